#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace mm::data {

/// Where symbolic links may lead.
enum class Links { kInsideRoot, kAnywhere };

/// File of a recorded picture path below `root`. Refused as "outside_root": absolute paths, drive
/// letters, and `..` that climbs above the root, with either kind of slash; as "bad_name": empty or
/// with a NUL. If no file has the literal name, backslashes mean slashes, and the name is tried in
/// Unicode's forms C and D. "missing" if there is no such regular file. Symbolic links may lead out
/// of the root only if `links` says so.
Result<std::filesystem::path> resolve_image_path(const std::filesystem::path& root,
                                                 std::string_view recorded,
                                                 Links links = Links::kInsideRoot);

}  // namespace mm::data
