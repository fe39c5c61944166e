#include "lib/run/run_comparison.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "lib/base/html.h"
#include "lib/base/toml_text.h"
#include "lib/run/report_page.h"
#include "lib/run/svg_chart.h"

namespace mm::run {
namespace {

using Value = double (*)(const StepRecord&);

/// Mean over the last tenth of the steps, at least one, of those that have the figure.
double late_mean(const std::vector<StepRecord>& steps, Value value) {
  double sum = 0;
  int64_t count = 0;
  const size_t begin = steps.size() - std::min(steps.size(), steps.size() / 10 + 1);
  for (size_t i = begin; i < steps.size(); ++i) {
    const double figure = value(steps[i]);
    if (std::isnan(figure) || steps[i].skipped) continue;
    sum += figure;
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : kUnknown;
}

std::string cell(double value, int digits) {
  return std::isnan(value) ? "" : fmt::format("{:.{}f}", value, digits);
}

std::string head_row(std::span<const RunReport> runs) {
  std::string out = "<tr><th></th>";
  for (const RunReport& run : runs) out += fmt::format("<th>{}</th>", html_escape(run.title));
  return out + "</tr>";
}

/// The newest loss that was written.
double last_loss(const std::vector<StepRecord>& steps) {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (!step->left_out.contains("loss")) return step->loss;
  }
  return kUnknown;
}

std::string figures_table(std::span<const RunReport> runs) {
  std::string out = "<table>" + head_row(runs);
  const auto row = [&](const char* head, const auto& text_of) {
    std::vector<std::string> cells;
    for (const RunReport& run : runs) cells.push_back(text_of(run));
    out += table_row(head, cells);
  };
  const auto late = [&](const char* head, int digits, Value value) {
    row(head, [&](const RunReport& run) { return cell(late_mean(run.steps, value), digits); });
  };
  row("steps", [](const RunReport& run) { return std::to_string(run.steps.size()); });
  row("last loss", [](const RunReport& run) { return cell(last_loss(run.steps), 4); });
  late("loss, last tenth", 4, [](const StepRecord& s) { return s.loss; });
  late("tokens/s", 0, [](const StepRecord& s) { return s.tokens_s; });
  late("samples/s", 1, [](const StepRecord& s) { return s.samples_s; });
  late("MFU", 3, [](const StepRecord& s) { return s.mfu; });
  late("data wait, ms", 2, [](const StepRecord& s) { return s.data_wait_ms; });
  late("peak memory, GiB", 2, [](const StepRecord& s) { return s.memory_gib; });
  return out + "</table>";
}

using Figures = std::map<std::string, std::vector<std::string>>;  ///< a cell a run, by head

/// Numbers below `node` under their path, as cells of run `index` of `count`.
void add_figures(const Json& node, const std::string& path, size_t index, size_t count,
                 Figures& all) {
  if (node.is_object()) {
    for (const auto& [name, value] : node.items())
      add_figures(value, path.empty() ? name : path + ": " + name, index, count, all);
  } else if (node.is_number()) {
    std::vector<std::string>& cells = all[path];
    cells.resize(count);
    cells[index] = node.is_number_float() ? fmt::format("{:.4f}", node.get<double>()) : node.dump();
  }
}

/// Every figure of every task, by data set.
std::string evaluation_table(std::span<const RunReport> runs) {
  std::map<std::string, Figures> sets;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].evaluation) continue;
    for (const auto& [data, tasks] : runs[i].evaluation->sets.items())
      add_figures(tasks, "", i, runs.size(), sets[data]);
  }
  std::string out;
  for (const auto& [data, figures] : sets) {
    if (figures.empty()) continue;
    out += fmt::format("<h3>{}</h3><table>{}", html_escape(data), head_row(runs));
    for (const auto& [head, cells] : figures) out += table_row(head, cells);
    out += "</table>";
  }
  return out.empty() ? "" : "<h2>Evaluation</h2>" + out;
}

std::string curves(std::span<const RunReport> runs, const char* title, Value value) {
  Chart chart{.title = title, .x_label = "global step"};
  for (const RunReport& run : runs) {
    Series line{.name = run.title};
    for (const StepRecord& step : run.steps) {
      const double figure = value(step);
      if (step.skipped || std::isnan(figure)) continue;
      line.x.push_back(static_cast<double>(step.step));
      line.y.push_back(figure);
    }
    chart.series.push_back(std::move(line));
  }
  return draw_svg(chart);
}

std::string differences_table(std::span<const RunReport> runs) {
  std::vector<std::string> recipes;
  for (const RunReport& run : runs) recipes.push_back(run.recipe);
  const std::vector<RecipeDifference> differences = recipe_differences(recipes);
  if (differences.empty()) return "<p>The recipes are the same.</p>";
  std::string out = "<table>";
  for (const RecipeDifference& one : differences) {
    std::vector<std::string> cells;
    for (const std::string& value : one.values) cells.push_back(html_escape(value));
    out += table_row(one.key, cells);
  }
  return out + "</table>";
}

using Keys = std::vector<std::pair<std::string, std::string>>;

std::string value_text(const toml::node& node) {
  if (const auto* number = node.as_floating_point()) return toml_text(number->get());
  if (const auto* array = node.as_array()) {
    std::vector<std::string> elements;
    for (const toml::node& element : *array) elements.push_back(value_text(element));
    return fmt::format("[{}]", fmt::join(elements, ", "));
  }
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

/// Values below `node` by their path, elements of arrays of tables by number.
void add_keys(const toml::node& node, const std::string& path, Keys& keys) {
  const auto below = [&](const auto& name) {
    return fmt::format("{}{}{}", path, path.empty() ? "" : ".", name);
  };
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) add_keys(value, below(key.str()), keys);
  } else if (node.is_array_of_tables()) {
    for (size_t i = 0; i < node.as_array()->size(); ++i)
      add_keys(*node.as_array()->get(i), below(i), keys);
  } else {
    keys.emplace_back(path, value_text(node));
  }
}

/// A recipe of a run's directory that is not TOML has no keys: the page shows the rest.
Keys keys_of(const std::string& recipe) {
  Keys keys;
  try {
    add_keys(toml::parse(recipe), "", keys);
  } catch (const toml::parse_error& error) {
    keys.emplace_back("recipe.toml", std::string(error.description()));
  }
  return keys;
}

}  // namespace

std::vector<RecipeDifference> recipe_differences(std::span<const std::string> recipes) {
  std::vector<RecipeDifference> all;
  std::map<std::string, size_t> row_of;
  for (size_t i = 0; i < recipes.size(); ++i) {
    for (const auto& [key, value] : keys_of(recipes[i])) {
      const auto [row, is_new] = row_of.emplace(key, all.size());
      if (is_new) all.push_back({key, std::vector<std::string>(recipes.size())});
      all[row->second].values[i] = value;
    }
  }
  std::erase_if(all, [](const RecipeDifference& d) {
    return std::all_of(d.values.begin(), d.values.end(),
                       [&](const std::string& value) { return value == d.values.front(); });
  });
  return all;
}

std::string render_comparison(std::span<const RunReport> runs) {
  const bool of_pictures = std::ranges::any_of(runs, &RunReport::of_pictures);
  const std::string speed =
      of_pictures
          ? curves(runs, "samples per second", [](const StepRecord& s) { return s.samples_s; })
          : curves(runs, "tokens per second", [](const StepRecord& s) { return s.tokens_s; });
  return report_page(fmt::format("{} runs of mmkit", runs.size()),
                     figures_table(runs) + evaluation_table(runs) + "<h2>Curves</h2>" +
                         curves(runs, "loss", [](const StepRecord& s) { return s.loss; }) +
                         curves(runs, "gradient norm before clipping",
                                [](const StepRecord& s) { return s.grad_norm; }) +
                         speed + "<h2>Recipe keys that differ</h2>" + differences_table(runs));
}

}  // namespace mm::run
