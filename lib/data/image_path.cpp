#include "lib/data/image_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace mm::data {
namespace {

bool leaves_root(std::string_view slashed) {
  if (slashed.starts_with('/')) return true;
  if (slashed.size() >= 2 && slashed[1] == ':' &&
      std::isalpha(static_cast<unsigned char>(slashed[0])))
    return true;
  int depth = 0;
  for (size_t begin = 0; begin <= slashed.size();) {
    const size_t end = std::min(slashed.find('/', begin), slashed.size());
    const auto part = slashed.substr(begin, end - begin);
    if (part == "..") {
      if (--depth < 0) return true;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
    begin = end + 1;
  }
  return false;
}

}  // namespace

Result<std::filesystem::path> resolve_image_path(const std::filesystem::path& root,
                                                 std::string_view recorded) {
  if (recorded.empty() || recorded.find('\0') != std::string_view::npos) {
    return Failure{"bad_name", "the picture's path is empty or holds a NUL"};
  }
  std::string slashed(recorded);
  std::replace(slashed.begin(), slashed.end(), '\\', '/');
  if (leaves_root(slashed)) {
    return Failure{"outside_root",
                   fmt::format("{} leads out of the image root {}", recorded, root.string())};
  }
  std::error_code error;
  const auto literal = root / recorded;
  if (std::filesystem::is_regular_file(literal, error)) return literal;
  const auto other = root / slashed;
  if (std::filesystem::is_regular_file(other, error)) return other;
  return Failure{"missing", fmt::format("no file {}", literal.string())};
}

}  // namespace mm::data
