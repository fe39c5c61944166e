#include "lib/data/row_fields.h"

#include <array>
#include <utility>

#include "lib/base/error.h"

namespace mm::data {
namespace {

constexpr std::array<std::string_view, 9> kImageColumns = {"image",      "images",     "file_name",
                                                           "image_path", "image_file", "path",
                                                           "filepath",   "filename",   "img"};
constexpr std::array<std::string_view, 4> kCaptionColumns = {"caption", "text", "TEXT", "prompt"};

}  // namespace

std::span<const std::string_view> image_columns() { return kImageColumns; }
std::span<const std::string_view> caption_columns() { return kCaptionColumns; }

const Json* find_field(const Json& row, std::string_view key) {
  const auto found = row.find(key);
  return found == row.end() || found->is_null() ? nullptr : &*found;
}

const Json* find_field(const Json& row, std::span<const std::string_view> keys) {
  for (const auto key : keys) {
    if (const Json* value = find_field(row, key)) return value;
  }
  return nullptr;
}

std::optional<std::string> id_of(const Json& row) {
  for (const std::string_view key : {"id", "key"}) {
    const Json* id = find_field(row, key);
    if (id == nullptr) continue;
    if (id->is_string() && !id->get_ref<const std::string&>().empty())
      return id->get<std::string>();
    if (id->is_number_integer()) return id->dump();
  }
  return std::nullopt;
}

std::optional<Json> as_list(const Json& value) {
  if (value.is_array()) return value;
  if (!value.is_string()) return std::nullopt;
  try {
    Json list = parse_json(value.get_ref<const std::string&>(), "list");
    if (list.is_array()) return list;
  } catch (const DataError&) {
    return std::nullopt;
  }
  return std::nullopt;
}

Failure bad_row(std::string message) { return {"bad_row", std::move(message)}; }

}  // namespace mm::data
