#include "lib/run/caption_shape.h"

#include <c10/util/accumulate.h>

#include <algorithm>

#include "lib/base/error.h"

namespace fs = std::filesystem;

namespace mm::run {
namespace {

void check_joined(const std::vector<DeclaredEncoder>& all,
                  const std::vector<fs::path>& directories) {
  int64_t clips = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool last = i + 1 == all.size();
    const bool t5 = all[i].encoder.family == model::TextFamily::kT5;
    if (is_clip(all[i].encoder)) clips += all[i].encoder.width;
    if (is_clip(all[i].encoder) || (last && t5 && clips <= all[i].encoder.width)) continue;
    throw UsageError(
        "{}: several text models are CLIP encoders, then at most one T5 that is at least as wide "
        "as they are together ({})",
        directories[i].string(), clips);
  }
}

/// CLIP encoders side by side, T5's rows below them.
CaptionShape joined_shape(const std::vector<DeclaredEncoder>& all, int64_t padding) {
  CaptionShape shape;
  int64_t width = 0, rows = 0;
  for (const DeclaredEncoder& one : all) {
    if (!is_clip(one.encoder)) continue;
    if (rows != 0 && rows != one.encoder.max_length)
      throw UsageError("text models of {} and {} positions cannot stand side by side", rows,
                       one.encoder.max_length);
    rows = one.encoder.max_length;
    shape.shares.push_back({.rows = rows,
                            .column = width,
                            .width = one.encoder.width,
                            .pooled = shape.pooled_width,
                            .pooled_width = one.encoder.pooled_width});
    width += one.encoder.width;
    shape.pooled_width += one.encoder.pooled_width;
  }
  const model::TextEncoder& last = all.back().encoder;
  shape.width = is_clip(last) ? width : last.width;
  shape.length = is_clip(last) ? rows : (padding > 0 ? rows + padding : 0);
  if (!is_clip(last)) shape.shares.push_back({.row = rows, .rows = padding, .width = last.width});
  return shape;
}

}  // namespace

DeclaredEncoder declare_encoder(const fs::path& directory) {
  const fs::path path = directory / "config.json";
  model::Model model;
  DeclaredEncoder out{
      .encoder = model::declare_text_encoder(model, read_json_file(path), path.string(), "")};
  for (const model::ParamSpec& spec : model.params)
    out.elements += static_cast<double>(c10::multiply_integers(spec.shape));
  return out;
}

CaptionShape caption_shape(const std::vector<fs::path>& directories, int64_t padding) {
  MM_CHECK(!directories.empty(), "a caption has at least one encoder");
  std::vector<DeclaredEncoder> all;
  for (const fs::path& directory : directories) all.push_back(declare_encoder(directory));
  CaptionShape shape;
  if (all.size() > 1) {
    check_joined(all, directories);
    shape = joined_shape(all, padding);
  } else {
    const model::TextEncoder& one = all.front().encoder;
    shape.width = one.width;
    shape.pooled_width = one.pooled_width;
    shape.length = one.pads_seen ? one.max_length : padding;
    shape.shares = {{.rows = shape.length, .width = one.width, .pooled_width = one.pooled_width}};
  }
  for (const DeclaredEncoder& one : all) {
    shape.elements += one.elements;
    // Half of what a backward would keep of the widest layer, and the states that are given.
    for (const model::TextStage& layer : one.encoder.layers)
      shape.live = std::max(shape.live, layer.saved / 2 + 2 * static_cast<double>(shape.width));
  }
  return shape;
}

}  // namespace mm::run
