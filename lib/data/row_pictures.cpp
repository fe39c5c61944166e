#include "lib/data/row_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/data/data_url.h"
#include "lib/data/row_fields.h"

namespace mm::data {
namespace {

bool is_remote(std::string_view text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

std::optional<Failure> add_text(const std::string& text, RowPictures& pictures) {
  if (text.empty()) return std::nullopt;
  if (is_remote(text)) {
    return Failure{"remote", fmt::format("{} is not a file; fetch the pictures first and give "
                                         "their paths",
                                         text.substr(0, 200))};
  }
  if (!text.starts_with("data:")) {
    pictures.add(text);
    return std::nullopt;
  }
  auto content = decode_data_url(text);
  if (!content) return bad_row("a picture's data URL is not base 64");
  pictures.add(fmt::format("picture {}", pictures.names.size()),
               std::make_shared<const std::string>(std::move(*content)));
  return std::nullopt;
}

std::optional<Failure> add_bytes(const Json& bytes, std::string name, RowPictures& pictures) {
  if (name.empty()) name = fmt::format("picture {}", pictures.names.size());
  if (bytes.is_binary()) {
    const auto& binary = bytes.get_binary();
    pictures.add(std::move(name),
                 std::make_shared<const std::string>(binary.begin(), binary.end()));
    return std::nullopt;
  }
  auto content = bytes.is_string() ? decode_base64(bytes.get_ref<const std::string&>())
                                   : std::optional<std::string>();
  if (!content) return bad_row("a picture's bytes are not base 64");
  pictures.add(std::move(name), std::make_shared<const std::string>(std::move(*content)));
  return std::nullopt;
}

std::optional<Failure> add_object(const Json& value, RowPictures& pictures) {
  const Json* path = find_field(value, "path");
  if (path != nullptr && !path->is_string()) return bad_row("a picture's path is not text");
  if (const Json* bytes = find_field(value, "bytes"))
    return add_bytes(*bytes, path == nullptr ? "" : path->get<std::string>(), pictures);
  if (path != nullptr) return add_text(path->get_ref<const std::string&>(), pictures);
  const Json* url = find_field(value, "url");
  if (url != nullptr && url->is_string())
    return add_text(url->get_ref<const std::string&>(), pictures);
  return bad_row("a picture is an object without bytes, path or url");
}

bool is_empty(const Json& value) {
  return (value.is_string() || value.is_array() || value.is_object()) && value.size() == 0;
}

std::optional<Failure> check_media(const Json& row) {
  for (const std::string_view key : {"video", "videos", "audio", "audios"}) {
    const Json* media = find_field(row, key);
    if (media != nullptr && !is_empty(*media) &&
        !(media->is_string() && media->get_ref<const std::string&>().empty())) {
      return bad_row(fmt::format("has \"{}\"; only pictures are read", key));
    }
  }
  return std::nullopt;
}

}  // namespace

void RowPictures::add(std::string name, CarriedPicture content) {
  names.push_back(std::move(name));
  carried.push_back(std::move(content));
}

void RowPictures::take(RowPictures& other, size_t i) {
  add(std::move(other.names[i]), std::move(other.carried[i]));
}

void RowPictures::move_to(Record& record) {
  record.images = std::move(names);
  const bool any = std::any_of(carried.begin(), carried.end(), [](const auto& c) { return !!c; });
  record.carried = any ? std::move(carried) : std::vector<CarriedPicture>();
}

std::optional<Failure> add_picture(const Json& value, RowPictures& pictures) {
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return add_text(value.get_ref<const std::string&>(), pictures);
  if (value.is_binary()) return add_bytes(value, "", pictures);
  if (value.is_object()) return add_object(value, pictures);
  return bad_row(fmt::format("a picture is {}, expected its path", value.type_name()));
}

Result<RowPictures> pictures_of_row(const Json& row) {
  if (auto failure = check_media(row)) return *failure;
  RowPictures pictures;
  const Json* value = find_field(row, image_columns());
  if (value == nullptr) return pictures;
  if (!value->is_array()) {
    if (auto failure = add_picture(*value, pictures)) return *failure;
    return pictures;
  }
  for (const Json& item : *value) {
    if (auto failure = add_picture(item, pictures)) return *failure;
  }
  return pictures;
}

}  // namespace mm::data
