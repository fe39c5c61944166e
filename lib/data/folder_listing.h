#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mm::data {

/// Whether sources take a file for a picture, by its name: .png .jpg .jpeg .webp .gif .bmp .tif
/// .tiff .avif .heic .jxl in any case.
bool is_picture_name(const std::filesystem::path& path);

/// Relative paths of all pictures in a directory and below, sorted by bytes; names that begin with
/// a dot are left alone. Throws IoError.
std::vector<std::string> list_pictures(const std::filesystem::path& root);

/// Files directly in a directory for which `wanted(name)`, sorted by bytes; names that begin with a
/// dot are left alone. Throws IoError.
std::vector<std::filesystem::path> list_files(
    const std::filesystem::path& folder, const std::function<bool(const std::string&)>& wanted);

/// "10_cat": 10 and "cat". Other names: 1 and the name.
struct KohyaName {
  uint32_t repeats = 1;
  std::string words;
};
/// Of the directory that holds a picture. At most 9,999 repeats, or the name is an ordinary one.
KohyaName kohya_name(std::string_view directory);

}  // namespace mm::data
