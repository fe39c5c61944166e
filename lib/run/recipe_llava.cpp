#include "lib/base/error.h"
#include "lib/data/pack_options.h"
#include "lib/run/recipe_tables.h"

// Sizes of vision-language models for a start from scratch.
namespace mm::run::detail {
namespace {

using Vision = ModelRecipe::Vision;
using Language = ModelRecipe::Language;

bool has_tiles(const std::string& family) {
  return family == "llava_next" || family == "llava_onevision";
}

/// Published OneVision's grids: all of up to 6 x 6 tiles.
std::string grids_up_to(int64_t most) {
  std::string grids;
  for (int64_t rows = 1; rows <= most; ++rows)
    for (int64_t columns = 1; columns <= most; ++columns)
      grids += fmt::format("{}{}x{}", grids.empty() ? "" : ",", rows, columns);
  return grids;
}

void read_feature_layer(ConfigTable& t, int64_t usual, Vision& v) {
  v.feature_layer = t.get_int(
      "feature_layer", {.def = usual,
                        .min = -1024,
                        .max = 1024,
                        .doc = "hidden state that the projector reads, -1: the last layer's"});
  const int64_t states = v.layers + 1;  // embeddings, then one a layer
  if (v.feature_layer >= states || v.feature_layer < -states || v.feature_layer == 0) {
    t.fail("feature_layer",
           fmt::format("{} is not one of the {} hidden states; expected -{}..-1 or 1..{}",
                       v.feature_layer, states, states - 1, v.layers));
  }
}

void read_grids(ConfigTable& t, bool onevision, Vision& v) {
  v.grids = t.get_string(
      "grids", {.def = onevision ? grids_up_to(6) : data::PictureOptions().grids,
                .doc = "families with tiles: rows x columns of tiles that a picture may take, as "
                       "the data set was packed (--grids)"});
  if (onevision)
    v.max_grid_tiles = t.get_int(
        "max_grid_tiles",
        {.def = 9,
         .min = 1,
         .max = 1024,
         .doc = "llava_onevision: features of more tiles are scaled down, as the data set was "
                "packed (--max-grid-tiles)"});
}

/// Towers for squares: pictures of one side, or tiles.
void read_square_tower(ConfigTable& t, const std::string& family, Vision& v) {
  const bool onevision = family == "llava_onevision";
  v.kind = t.get_enum("kind", {.words = {"clip", "siglip"},
                               .def = onevision ? "siglip" : "clip",
                               .doc = "whose layers the tower has; clip has a class token, which "
                                      "the projector does not read"});
  v.image_side =
      t.get_int("image_side", {.def = 64,
                               .min = 1,
                               .max = 16384,
                               .doc = "side of the picture, pixels; as the data set was packed"});
  if (v.patch > v.image_side)
    t.fail("patch", fmt::format("{} pixels are more than image_side = {}", v.patch, v.image_side));
  read_feature_layer(t, onevision ? -1 : -2, v);
  if (has_tiles(family)) read_grids(t, onevision, v);
}

void read_qwen_tower(ConfigTable& t, Vision& v) {
  v.merge = t.get_int("merge", {.def = 2,
                                .min = 1,
                                .max = 64,
                                .doc = "qwen2_5_vl: patches along a side that make one token"});
  const int64_t cell = v.patch * v.merge;
  v.window = t.get_int(
      "window", {.def = 4 * cell,
                 .min = 1,
                 .max = 1 << 20,
                 .doc = "qwen2_5_vl: side of the window that attention sees, pixels (default: 4 x "
                        "patch x merge)"});
  v.full_layers = t.get_int_list(
      "full_layers", {.def = std::vector<int64_t>{v.layers - 1},
                      .min = 0,
                      .max = v.layers - 1,
                      .doc = "qwen2_5_vl: layers, from 0, whose attention sees the whole picture "
                             "(default: the last one)"});
  if (v.window % cell != 0)
    t.fail("window", fmt::format("{} is no multiple of patch x merge = {}", v.window, cell));
  if (v.hidden / v.heads % 4 != 0)
    t.fail("heads", fmt::format("head size {} is no multiple of 4; rows and columns of the picture "
                                "both need pairs",
                                v.hidden / v.heads));
}

/// M-RoPE: a quarter of the pairs turn with time, the rest with rows and columns, as published.
void read_rope_sections(ConfigTable& t, Language& l) {
  const int64_t pairs = l.hidden / l.heads / 2, time = pairs / 4, rows = (pairs - time) / 2;
  l.rope_sections = t.get_int_list(
      "rope_sections",
      {.def = std::vector<int64_t>{time, rows, pairs - time - rows},
       .min = 0,
       .max = 65536,
       .min_count = 3,
       .max_count = 3,
       .doc = "qwen2_5_vl: pairs of a head that turn with time, row and column (default: a "
              "quarter, and halves of the rest)"});
  if (l.rope_sections[0] + l.rope_sections[1] + l.rope_sections[2] != pairs)
    t.fail("rope_sections", fmt::format("their sum must be half of the head size, {}", pairs));
}

}  // namespace

ModelRecipe::Vision read_vision(ConfigTable t, const std::string& family) {
  Vision v;
  v.hidden =
      t.get_int("hidden", {.def = 128, .min = 1, .max = 65536, .doc = "width of the vision tower"});
  v.layers =
      t.get_int("layers", {.def = 4,
                           .min = 1,
                           .max = 1024,
                           .doc = "layers of the tower, those after the feature layer included"});
  v.heads = t.get_int("heads", {.def = 4, .min = 1, .max = 1024, .doc = "attention heads"});
  v.mlp = t.get_int("mlp", {.def = 4 * v.hidden,
                            .min = 1,
                            .max = 1 << 20,
                            .doc = "width of the feed-forward layer (default: 4 x hidden)"});
  v.patch = t.get_int("patch", {.def = 8, .min = 1, .max = 1024, .doc = "side of a patch, pixels"});
  if (v.hidden % v.heads != 0)
    t.fail("heads", fmt::format("{} heads do not divide hidden = {}", v.heads, v.hidden));
  if (family == "qwen2_5_vl") {
    read_qwen_tower(t, v);
  } else {
    read_square_tower(t, family, v);
  }
  return v;
}

ModelRecipe::Language read_language(ConfigTable t, const std::string& family) {
  Language l;
  const bool qwen_vl = family == "qwen2_5_vl";
  l.kind = qwen_vl ? "qwen2"
                   : t.get_enum("kind",
                                {.words = {"llama", "mistral", "qwen2", "qwen3"},
                                 .def = family == "llava_onevision" ? "qwen2" : "llama",
                                 .doc = "whose layers the decoder has; qwen2: biases on q, k and "
                                        "v; qwen3: norms of q's and k's heads"});
  l.hidden =
      t.get_int("hidden", {.def = 192, .min = 1, .max = 65536, .doc = "width of the decoder"});
  l.layers = t.get_int("layers", {.def = 4, .min = 1, .max = 1024, .doc = "decoder layers"});
  l.heads = t.get_int("heads", {.def = 4, .min = 1, .max = 1024, .doc = "query heads"});
  l.kv_heads = t.get_int(
      "kv_heads",
      {.def = l.heads, .min = 1, .max = 1024, .doc = "key-value heads (default: as heads)"});
  l.mlp = t.get_int("mlp", {.def = 3 * l.hidden,
                            .min = 1,
                            .max = 1 << 20,
                            .doc = "width of the gated feed-forward layer (default: 3 x hidden)"});
  l.rope_theta = t.get_double(
      "rope_theta", {.def = 10000.0, .min = 1, .max = 1e9, .doc = "base of the rotary positions"});
  l.tied_head =
      t.get_bool("tied_head", {.def = false, .doc = "the output head is the embedding table"});
  if (l.hidden % l.heads != 0)
    t.fail("heads", fmt::format("{} heads do not divide hidden = {}", l.heads, l.hidden));
  if (l.hidden / l.heads % 2 != 0)
    t.fail("heads",
           fmt::format("head size {} is odd; rotary positions need pairs", l.hidden / l.heads));
  if (l.heads % l.kv_heads != 0)
    t.fail("kv_heads",
           fmt::format("{} key-value heads do not divide {} query heads", l.kv_heads, l.heads));
  if (qwen_vl) read_rope_sections(t, l);
  return l;
}

}  // namespace mm::run::detail
