#pragma once
#include <filesystem>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/data/image_path.h"
#include "lib/data/record.h"
#include "lib/data/row_pictures.h"

namespace mm::data {

/// An interleaved document: what text::Conversation calls a document, and its pictures in order.
struct RowDocument {
  text::Conversation conversation;
  RowPictures pictures;
};

/// MMC4: `text_list` of sentences and `image_info` of {image_name, matched_text_index}. A picture
/// stands before its sentence, several of one sentence in the order of the list; sentences are
/// joined by a blank. Pictures without a name were never fetched and are left out.
Result<RowDocument> document_from_mmc4(const Json& row);

/// OBELICS: `texts` and `images` of equal length, exactly one of the two at each index;
/// neighbouring texts are joined by an empty line. Pictures are paths, {bytes, path} or URLs; the
/// file that a URL was fetched to must be named instead, or the picture counts as missing.
Result<RowDocument> document_from_obelics(const Json& row);

/// Interleaved sets list pictures that nobody could fetch: those without a file below `root` leave
/// the document, each with an entry "missing" that does not count as bad. Other records stay as
/// they are.
std::vector<LedgerEntry> drop_missing_pictures(Record& record, const std::filesystem::path& root,
                                               Links links);

}  // namespace mm::data
