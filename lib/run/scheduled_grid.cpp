#include "lib/run/scheduled_grid.h"

#include <algorithm>
#include <chrono>

#include "lib/base/error.h"
#include "lib/run/patient_work.h"
#include "lib/run/trained_diffusion.h"

namespace mm::run {
namespace {

/// Sides, then pixels, of each picture.
std::string to_bytes(const std::vector<image::Image>& pictures) {
  std::string bytes;
  const auto put = [&](const void* data, size_t size_bytes) {
    bytes.append(static_cast<const char*>(data), size_bytes);
  };
  for (const image::Image& picture : pictures) {
    put(&picture.width, sizeof(picture.width));
    put(&picture.height, sizeof(picture.height));
    put(picture.rgb.data(), picture.rgb.size());
  }
  return bytes;
}

std::vector<image::Image> from_bytes(std::string_view bytes) {
  std::vector<image::Image> pictures;
  const auto take = [&](void* data, size_t size_bytes) {
    MM_CHECK(bytes.size() >= size_bytes, "{} bytes of a picture, expected {}", bytes.size(),
             size_bytes);
    std::copy_n(bytes.data(), size_bytes, static_cast<char*>(data));
    bytes.remove_prefix(size_bytes);
  };
  while (!bytes.empty()) {
    image::Image& picture = pictures.emplace_back();
    take(&picture.width, sizeof(picture.width));
    take(&picture.height, sizeof(picture.height));
    picture.rgb.resize(size_t{3} * static_cast<size_t>(picture.width) *
                       static_cast<size_t>(picture.height));
    take(picture.rgb.data(), picture.rgb.size());
  }
  return pictures;
}

}  // namespace

bool grid_is_due(const SampleRecipe& sample, int64_t global_step) {
  return sample.every_steps > 0 && global_step % sample.every_steps == 0;
}

bool draws_rows(const SampleRecipe& sample, const ModelFamily& family, int rank) {
  return rank == 0 || (rank < sample.rows && family.every_rank_draws());
}

std::optional<image::Image> draw_scheduled_grid(const Recipe& recipe, const ModelFamily& family,
                                                const model::ParamView& params, Comm& comm) {
  const int64_t rows = recipe.sample.rows, dealt_to = family.every_rank_draws() ? comm.world : 1;
  std::vector<std::string> mine(static_cast<size_t>(rows));
  const auto draw = [&](const std::stop_token& stop) {
    for (int64_t row = comm.rank; row < rows && !stop.stop_requested(); row += dealt_to)
      mine[static_cast<size_t>(row)] = to_bytes(family.draw_row(row, params));
  };
  // Well within the deadline of a collective.
  const std::chrono::duration<double> beat(std::min(1.0, recipe.comm_timeout_s / 4));
  std::function<void(const std::stop_token&)> work;
  if (draws_rows(recipe.sample, family, comm.rank)) work = draw;
  work_patiently(*comm.control, work, beat);
  std::vector<image::Image> pictures;
  for (const std::string& row : mine) {
    for (const std::string& bytes : comm.control->all_gather_bytes(row)) {
      if (comm.rank != 0) continue;
      for (image::Image& picture : from_bytes(bytes)) pictures.push_back(std::move(picture));
    }
  }
  if (comm.rank != 0) return std::nullopt;
  return picture_grid(pictures, recipe.sample.columns);
}

}  // namespace mm::run
