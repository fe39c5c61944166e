#pragma once
#include "lib/data/dataset.h"
#include "tools/bench_pack/bench_row.h"

namespace mm::bench {

/// What cannot be avoided when all samples of a set are loaded once, by one thread: for raw
/// pictures reading the shards' bytes from the page cache once, for JPEG decoding them too.
double load_limit_cpu_s(const data::Dataset& set);

/// Loading the same pictures from their files: read, decode, resize and crop, collate.
Row load_files(const std::filesystem::path& folder, int32_t side, int repeat);

}  // namespace mm::bench
