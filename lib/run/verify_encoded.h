#pragma once
#include <filesystem>

#include "lib/data/verify_dataset.h"

namespace mm::run {

/// Reads every byte of an encoded set: each unit's size and hash against the manifest, its
/// settings, its place and its rows. Goes on after a problem; `threads` 0: all cores. Without the
/// data set it cannot tell whether the set is of that one; opening does (EncodedSet). Throws
/// DataError when there is no manifest that can be read, IoError.
data::VerifyReport verify_encoded(const std::filesystem::path& directory, int threads = 0);

}  // namespace mm::run
