#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace mm::data {

/// True if no file has this literal name and it holds `*`, `?`, `{a,b}` or `{0..9}`.
bool is_pattern(const std::filesystem::path& path);

/// `{00..17}` (kept at the width of the first bound) and `{a,b}`, nested or several, in the order
/// they are written, as a shell does; braces without comma or range stand for themselves. Throws
/// UsageError for a range of over 1,000,000 or a pattern that grows beyond that many names.
std::vector<std::string> expand_braces(const std::string& pattern);

/// Files that match: braces first, then `*` and `?` in any part of the path but for leading dots,
/// sorted by bytes for each brace alternative. A brace alternative without wildcard must exist:
/// IoError names the one that does not.
std::vector<std::filesystem::path> expand_pattern(const std::filesystem::path& path);

}  // namespace mm::data
