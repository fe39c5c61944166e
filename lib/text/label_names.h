#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/text/tokenizer.h"

namespace mm::text {

/// Class names as a tokenizer: a text is one name and becomes its place in the list; several ids
/// decode to names with ", " between. No bos, eos, unk or pad. The file is a JSON array of names,
/// none empty, none twice. Throws DataError naming `origin` and what is wrong; encoding another
/// text throws DataError too.
std::unique_ptr<Tokenizer> parse_label_names(std::string_view content, std::string_view origin);

/// The file for these names.
std::string label_names_file(std::span<const std::string> names);

}  // namespace mm::text
