#include "lib/image/decode.h"

#include <algorithm>
#include <charconv>

#include "lib/base/error.h"
#include "lib/image/exif.h"
#include "lib/image/row_reader.h"

namespace mm::image {
namespace {

constexpr int32_t kRowsAtATime = 16;

// Set aside at once; a larger picture proves itself by its rows first.
constexpr size_t kReserveBytes = size_t{128} << 20;

// Grows with the rows that come, so a header alone never makes memory resident.
std::optional<Failure> read_image(RowReader& reader, Image& image) {
  const size_t row_bytes = image.row_bytes();
  image.rgb.reserve(std::min(row_bytes * image.height, kReserveBytes));
  std::vector<uint8_t> rows(row_bytes * kRowsAtATime);
  for (int32_t y = 0; y < image.height; y += kRowsAtATime) {
    const int32_t count = std::min(kRowsAtATime, image.height - y);
    if (auto failure = reader.read(rows.data(), count)) return failure;
    image.rgb.insert(image.rgb.end(), rows.begin(),
                     rows.begin() + static_cast<ptrdiff_t>(row_bytes * count));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Orient> orient_from_name(std::string_view name) {
  if (name == "apply") return Orient::kApply;
  if (name == "ignore") return Orient::kIgnore;
  return std::nullopt;
}

std::optional<Alpha> alpha_from_name(std::string_view name) {
  if (name == "white") return Alpha{};
  if (name == "black") return Alpha{.behind = {0, 0, 0}};
  if (name == "drop") return Alpha{.drop = true};
  if (name.size() != 7 || name[0] != '#') return std::nullopt;
  uint32_t rgb = 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + 7, rgb, 16);
  if (error != std::errc() || end != name.data() + 7) return std::nullopt;
  return Alpha{.behind = {static_cast<uint8_t>(rgb >> 16), static_cast<uint8_t>(rgb >> 8),
                          static_cast<uint8_t>(rgb)}};
}

OpenedReader open_rows(std::span<const std::byte> file, const Header& header,
                       const DecodeOptions& options) {
  switch (header.format) {
    case Format::kJpeg:
      return open_jpeg(file, header, options);
    case Format::kPng:
      return open_png(file, header, options);
    case Format::kWebp:
      return open_webp(file, header, options);
    case Format::kGif:
      return open_gif(file, header, options);
    default:
      throw InternalError("open_rows: {} has passed the probe", format_name(header.format));
  }
}

void add_header_notes(const Header& header, std::vector<std::string>& notes) {
  if (header.has_icc) notes.emplace_back("icc ignored");
  if (header.animated) notes.emplace_back("first picture of several");
}

Result<Header> probe_for(std::span<const std::byte> file, const DecodeOptions& options) {
  auto header = probe(file, options.limits);
  if (!header || header->orientation != 1) return header;
  header->orientation = options.untagged;
  if (swaps_sides(options.untagged)) std::swap(header->upright.width, header->upright.height);
  return header;
}

Result<Decoded> decode(std::span<const std::byte> file, const DecodeOptions& options) {
  auto header = probe_for(file, options);
  if (!header) return header.failure();
  auto reader = open_rows(file, *header, options);
  if (!reader) return reader.failure();
  Decoded out;
  out.header = *header;
  out.image.width = header->stored.width;
  out.image.height = header->stored.height;
  add_header_notes(*header, out.notes);
  if (auto failure = read_image(**reader, out.image)) return *failure;
  if (auto failure = (*reader)->finish(out)) return *failure;
  if (options.orient == Orient::kApply)
    out.image = apply_orientation(std::move(out.image), header->orientation);
  return out;
}

}  // namespace mm::image
