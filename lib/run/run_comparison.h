#pragma once
#include <span>
#include <string>
#include <vector>

#include "lib/run/run_report.h"

namespace mm::run {

/// One self-contained HTML page that sets runs side by side: a table of steps, last and mean late
/// loss, throughput, MFU, data wait, memory and scores; curves of loss, gradient norm and
/// throughput over each other; and the recipe's lines in which runs differ.
std::string render_comparison(std::span<const RunReport> runs);

/// Lines of recipes (resolved TOML) that are not the same in all: "table.key", then each recipe's
/// value, "" where it has none. By name, those that only later recipes have at the end. What is not
/// TOML differs as a whole.
struct RecipeDifference {
  std::string key;
  std::vector<std::string> values;
};
std::vector<RecipeDifference> recipe_differences(std::span<const std::string> recipes);

}  // namespace mm::run
