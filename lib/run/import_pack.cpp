#include "lib/run/import_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>

namespace mm::run {
namespace {

int64_t number(const std::string& digits) { return digits.empty() ? 0 : std::stoll(digits); }

}  // namespace

std::string base_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.empty() ? "DATA" : name;
}

std::string packed_name(const std::string& source) {
  return "packed/" + std::filesystem::path(base_name(source)).stem().string();
}

std::string shell_quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

TowerName read_tower_name(const std::string& name) {
  // Names of published towers are short; a longer word is none.
  if (name.size() > 256) return {};
  TowerName tower;
  std::smatch found;
  static const std::regex patch_and_side("patch-?([0-9]{1,3})(?:-([0-9]{2,4}))?");
  if (std::regex_search(name, found, patch_and_side)) {
    tower.patch = number(found[1]);
    tower.image_side = number(found[2]);
    if (tower.image_side == 0 && name.find("clip") != std::string::npos) tower.image_side = 224;
    if (tower.image_side == 0 && name.find("siglip") != std::string::npos) tower.image_side = 224;
  }
  return tower;
}

std::vector<std::string> PackCommand::lines() const {
  std::vector<std::string> words{"mmshard pack " + shell_quoted(source) + " --out " +
                                 shell_quoted(out)};
  const auto add = [&](const char* flag, const std::string& value) {
    words.push_back(fmt::format("{} {}", flag, shell_quoted(value)));
  };
  add("--tokenizer", tokenizer);
  if (!image_root.empty()) add("--image-root", image_root);
  add("--template", chat_template.empty() ? "TEMPLATE.toml" : chat_template);
  if (max_length > 0) add("--max-length", std::to_string(max_length));
  add("--geometry", geometry);
  if (image_side > 0) add("--image-side", std::to_string(image_side));
  if (patch > 0) add("--patch", std::to_string(patch));
  if (merge > 1) add("--merge", std::to_string(merge));
  if (!grids.empty()) add("--grids", grids);
  if (max_grid_tiles > 0) add("--max-grid-tiles", std::to_string(max_grid_tiles));
  if (max_tiles > 0) add("--max-tiles", std::to_string(max_tiles));
  if (geometry == "internvl") add("--thumbnail", thumbnail ? "true" : "false");
  std::vector<std::string> rows;
  for (const std::string& word : words) {
    if (!rows.empty() && rows.back().size() + word.size() < 100) {
      rows.back() += " " + word;
    } else {
      rows.push_back((rows.empty() ? "" : "    ") + word);
    }
  }
  for (size_t i = 0; i + 1 < rows.size(); ++i) rows[i] += " \\";
  return rows;
}

}  // namespace mm::run
