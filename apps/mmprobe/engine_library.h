#pragma once
#include <filesystem>

namespace mm::mmprobe {

/// The library with LibTorch beside this program, or the one that MMPROBE_ENGINE names; it may not
/// be there.
std::filesystem::path engine_path();

/// Loads it and finds `symbol`; throws UsageError saying what is missing.
void* engine_symbol(const char* symbol);

}  // namespace mm::mmprobe
