#include "lib/image/decode_into.h"

#include "lib/base/error.h"
#include "lib/image/row_reader.h"

namespace mm::image {

std::optional<Failure> decode_into(std::span<const std::byte> file, const Header& header,
                                   std::span<uint8_t> rgb, const DecodeOptions& options) {
  const auto [width, height] = header.stored;
  MM_CHECK(rgb.size() == size_t{3} * static_cast<size_t>(width) * static_cast<size_t>(height),
           "{} bytes for {}x{} pixels", rgb.size(), width, height);
  auto reader = open_rows(file, header, options);
  if (!reader) return reader.failure();
  if (auto failure = (*reader)->read(rgb.data(), height)) return failure;
  Decoded unused;
  return (*reader)->finish(unused);
}

}  // namespace mm::image
