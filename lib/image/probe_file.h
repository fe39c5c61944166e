#pragma once
#include <filesystem>

#include "lib/base/result.h"
#include "lib/image/probe.h"

namespace mm::image {

/// `probe` of a file by its name, reading no more than it takes: the first 16 KiB, which hold a
/// JPEG's header or a small file; else pages of a map, as the walk touches them. Equal to `probe`
/// of the whole content. Thread-safe. Throws IoError if the file cannot be opened or read.
Result<Header> probe_file(const std::filesystem::path& path, const Limits& limits = {});

}  // namespace mm::image
