#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/data/dataset.h"
#include "lib/text/tokenizer.h"

namespace mm::data {

/// One HTML page without any other file or network: for each row its pictures as they are trained
/// on (PNG in data: URIs), its name, its text, and its tokens with the trained ones coloured;
/// placeholders of a picture are drawn as one box with their count. A row that cannot be read shows
/// why. All text is escaped. Pure; throws IoError.
std::string contact_sheet(const Dataset& set, const text::Tokenizer& tokenizer,
                          std::span<const uint64_t> rows);

/// `count` rows evenly spread over the set (which is sorted by length), all if there are fewer.
std::vector<uint64_t> spread_rows(uint64_t rows, uint64_t count);

}  // namespace mm::data
