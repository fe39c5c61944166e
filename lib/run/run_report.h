#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lib/run/eval_result.h"
#include "lib/run/metrics.h"

namespace mm::run {

/// What the page of a run shows.
struct RunReport {
  std::string title;
  std::string recipe;            ///< resolved TOML text
  std::string family = "llava";  ///< model.family of the recipe
  std::vector<StepRecord> steps;
  std::optional<EvalResult> evaluation;

  /// Its loss is one of pictures, not of target tokens: diffusion models and autoencoders.
  bool of_pictures() const;
};

/// One self-contained HTML page, no network: score table, held-out pictures with the true and the
/// given name, loss of each stage, gradient norm, throughput, data wait, and the recipe. Charts
/// hold the steps that have the metric. A few hundred kilobytes for 150 pictures.
std::string render_report(const RunReport& report);

/// Reads RUN/{metrics.jsonl, eval.json, recipe.toml}; what is missing is left out. Throws DataError
/// if there is nothing at all, or with the file's name for one that cannot be read.
RunReport load_report(const std::filesystem::path& run_directory);

}  // namespace mm::run
