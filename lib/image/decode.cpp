#include "lib/image/decode.h"

#include <fmt/format.h>

#include <algorithm>

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
  if (name == "white") return Alpha::kWhite;
  if (name == "black") return Alpha::kBlack;
  if (name == "drop") return Alpha::kDrop;
  return std::nullopt;
}

OpenedReader open_rows(std::span<const std::byte> file, const Header& header,
                       const DecodeOptions& options) {
  if (header.format == Format::kJpeg) return open_jpeg(file, header, options);
  if (header.format == Format::kPng) return open_png(file, header, options);
  return Failure{"unsupported_format",
                 fmt::format("{} pictures are not read yet", format_name(header.format))};
}

Result<Decoded> decode(std::span<const std::byte> file, const DecodeOptions& options) {
  auto header = probe(file, options.limits);
  if (!header) return header.failure();
  auto reader = open_rows(file, *header, options);
  if (!reader) return reader.failure();
  Decoded out;
  out.header = *header;
  out.image.width = header->stored.width;
  out.image.height = header->stored.height;
  if (header->has_icc) out.notes.emplace_back("icc ignored");
  if (auto failure = read_image(**reader, out.image)) return *failure;
  if (auto failure = (*reader)->finish(out.notes)) return *failure;
  if (options.orient == Orient::kApply)
    out.image = apply_orientation(std::move(out.image), header->orientation);
  return out;
}

}  // namespace mm::image
