#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/base/result.h"
#include "lib/image/decode.h"

namespace mm::image {

/// `decode` straight into its place: `rgb` is [height, width, 3] of `header.stored` (orientation is
/// not applied) and holds equal bytes afterwards, anything after a failure. `header` is what
/// `probe` found in this file. Failures as `decode`. Thread-safe.
std::optional<Failure> decode_into(std::span<const std::byte> file, const Header& header,
                                   std::span<uint8_t> rgb, const DecodeOptions& options = {});

}  // namespace mm::image
