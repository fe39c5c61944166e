#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mm::run {

/// The `mmshard pack` that prepares the data of an imported run, as far as its arguments say.
struct PackCommand {
  std::string source, out, tokenizer, image_root;
  std::string chat_template;  ///< empty: unknown
  std::string geometry = "crop";
  int64_t image_side = 0, patch = 0, merge = 1;  ///< 0: unknown
  int64_t max_length = 0;
  std::string grids;           ///< of geometry anyres; empty: its default
  int64_t max_grid_tiles = 0;  ///< of geometry anyres, 0: no cap
  int64_t max_tiles = 0;       ///< of geometry internvl
  bool thumbnail = true;       ///< of geometry internvl

  /// The command in lines that a shell joins.
  std::vector<std::string> lines() const;
};

/// What the name of a published vision tower says: "openai/clip-vit-large-patch14-336".
struct TowerName {
  int64_t image_side = 0, patch = 0;  ///< pixels, 0: the name does not say
};
TowerName read_tower_name(const std::string& name);

/// The last part of a path; "DATA" if it has none.
std::string base_name(const std::string& path);
/// Where the packed set of a source goes: "packed/" and its name without an ending.
std::string packed_name(const std::string& source);

/// A word that a shell reads as it is.
std::string shell_quoted(const std::string& word);

}  // namespace mm::run
