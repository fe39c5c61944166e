#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include "lib/base/result.h"
#include "lib/image/probe.h"

namespace mm::image {

/// One walker a format: sizes, orientation and flags from a file's structure, no pixel decoded.
/// `header.format` is set; the rest is filled. A failure as `probe` lists them.
std::optional<Failure> walk_jpeg(std::span<const std::byte> file, Header& header);
std::optional<Failure> walk_png(std::span<const std::byte> file, Header& header);
std::optional<Failure> walk_webp(std::span<const std::byte> file, Header& header);
std::optional<Failure> walk_gif(std::span<const std::byte> file, Header& header);

/// "truncated", for a file of `size_bytes` that ends inside its header.
Failure ends_in_header(Format format, size_t size_bytes);

}  // namespace mm::image
