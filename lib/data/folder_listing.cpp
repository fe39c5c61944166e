#include "lib/data/folder_listing.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "lib/base/error.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 11> kPictureNames = {
    ".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".jxl"};
constexpr size_t kMaxRepeatDigits = 4;

}  // namespace

bool is_picture_name(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kPictureNames.begin(), kPictureNames.end(), extension) != kPictureNames.end();
}

std::vector<std::string> list_pictures(const fs::path& root) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator it(root, error);
  if (error) throw IoError("{}: cannot list: {}", root.string(), error.message());
  for (; it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) {
      if (it->is_directory()) it.disable_recursion_pending();
      continue;
    }
    if (is_picture_name(it->path()) && it->is_regular_file()) {
      names.push_back(it->path().lexically_relative(root).string());
    }
  }
  if (error) throw IoError("{}: cannot list: {}", root.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<fs::path> list_files(const fs::path& folder,
                                 const std::function<bool(const std::string&)>& wanted) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with('.') && wanted(name) && it->is_regular_file())
      files.push_back(it->path());
  }
  if (error) throw IoError("{}: cannot list: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end());
  return files;
}

KohyaName kohya_name(std::string_view directory) {
  const size_t bar = directory.find('_');
  const KohyaName plain{1, std::string(directory)};
  if (bar == std::string_view::npos || bar == 0 || bar > kMaxRepeatDigits) return plain;
  uint32_t repeats = 0;
  for (const char c : directory.substr(0, bar)) {
    if (c < '0' || c > '9') return plain;
    repeats = repeats * 10 + static_cast<uint32_t>(c - '0');
  }
  if (repeats == 0) return plain;
  return {repeats, std::string(directory.substr(bar + 1))};
}

}  // namespace mm::data
