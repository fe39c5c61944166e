#include "lib/data/image_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lib/text/normal_form.h"

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

std::string in_form(text::NormalForm form, const std::string& name) {
  return text::to_normal_form(form, name).text;
}

/// The file, unless a link takes it out of the root.
Result<std::filesystem::path> inside(const std::filesystem::path& root,
                                     const std::filesystem::path& file, Links links) {
  if (links == Links::kAnywhere) return file;
  std::error_code error;
  const auto real_root = std::filesystem::canonical(root, error);
  const auto real = std::filesystem::canonical(file, error);
  const auto end = std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end());
  if (!error && end.first == real_root.end()) return file;
  return Failure{"outside_root",
                 fmt::format("{} is a link out of the image root {} (--follow-links allows it)",
                             file.string(), root.string())};
}

}  // namespace

Result<std::filesystem::path> resolve_image_path(const std::filesystem::path& root,
                                                 std::string_view recorded, Links links) {
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
  if (std::filesystem::is_regular_file(literal, error)) return inside(root, literal, links);
  // An archive made on another system may have composed or taken apart the accents of its names.
  for (const std::string& name : {slashed, in_form(text::NormalForm::kNfc, slashed),
                                  in_form(text::NormalForm::kNfd, slashed)}) {
    const auto other = root / name;
    if (std::filesystem::is_regular_file(other, error)) return inside(root, other, links);
  }
  return Failure{"missing", fmt::format("no file {}", literal.string())};
}

}  // namespace mm::data
