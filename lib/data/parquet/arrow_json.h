#pragma once
#include <arrow/array.h>

#include <cstdint>

#include "lib/base/json.h"

namespace mm::data {

/// Element `i` of an Arrow array as JSON: numbers, booleans, text, lists, structs and dictionaries
/// as their like, binary as a binary value, null and all other types as null. Throws DataError for
/// text that is not UTF-8 and for values nested deeper than 16.
Json arrow_to_json(const arrow::Array& array, int64_t i);

}  // namespace mm::data
