#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/json.h"
#include "lib/base/result.h"

namespace mm::data {

/// Names that the field uses for the columns of a row, the first that is there and not null counts.
std::span<const std::string_view> image_columns();    ///< image, images, file_name, path, ...
std::span<const std::string_view> caption_columns();  ///< caption, text, TEXT, prompt, ...

/// Value of the first key of `keys` that is there and not null.
const Json* find_field(const Json& row, std::span<const std::string_view> keys);
const Json* find_field(const Json& row, std::string_view key);

/// `id` or `key` as text: a string that is not empty, or a whole number.
std::optional<std::string> id_of(const Json& row);

/// A list, or a string that holds one as JSON (Parquet files keep them so). Nothing if it is
/// neither.
std::optional<Json> as_list(const Json& value);

Failure bad_row(std::string message);

}  // namespace mm::data
