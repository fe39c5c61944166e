#include "lib/run/run_report.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/html.h"
#include "lib/run/report_page.h"
#include "lib/run/svg_chart.h"

namespace mm::run {
namespace {

std::string score_table(const EvalResult& evaluation) {
  std::string out =
      "<table><tr><th></th><th>exact match</th><th>word "
      "F1</th><th>recall@1</th><th>recall@5</th><th>recall@10</th></tr>";
  for (const EvalRow& row : evaluation.rows) {
    const NameScore& s = row.score;
    out += fmt::format(
        "<tr><td>{}</td><td>{:.1f} %</td><td>{:.1f} %</td><td>{:.1f} %</td><td>{:.1f} "
        "%</td><td>{:.1f} %</td></tr>",
        html_escape(row.name), 100 * s.exact, 100 * s.f1, 100 * s.recall_1, 100 * s.recall_5,
        100 * s.recall_10);
  }
  return out + "</table>";
}

std::string scores(const EvalResult& evaluation) {
  std::string out;
  if (!evaluation.rows.empty())
    out += "<h2>Held-out pictures: scores</h2>" + score_table(evaluation);
  std::string tasks;
  for (const auto& [data, figures] : evaluation.sets.items()) {
    const std::string lines = task_lines(figures);
    if (!lines.empty())
      tasks += fmt::format("<h3>{}</h3><pre>{}</pre>", html_escape(data), html_escape(lines));
  }
  return tasks.empty() ? out : out + "<h2>Evaluation</h2>" + tasks;
}

std::string picture_cards(const EvalResult& evaluation) {
  std::string out = "<div class='cards'>";
  for (const EvalPicture& p : evaluation.pictures) {
    const bool right = exact_match(p.outcome.truth, p.outcome.guess);
    out += fmt::format(
        "<div class='card {}'>{}<img alt='' src='{}'><b>{}</b><br>{}<br><small>true name ranked "
        "{}</small></div>",
        right ? "right" : "wrong",
        p.real_uri.empty() ? "" : fmt::format("<img alt='' src='{}'>", html_escape(p.real_uri)),
        html_escape(p.data_uri), html_escape(p.outcome.truth), html_escape(p.outcome.guess),
        p.outcome.rank + 1);
  }
  return out + "</div>";
}

std::string rebuilt_cards(const EvalResult& evaluation) {
  std::string out = "<div class='cards'>";
  for (const RebuiltPicture& p : evaluation.rebuilt)
    out += fmt::format(
        "<div class='card'><img alt='' src='{}'><img alt='' src='{}'><b>{}</b><br><small>{:.1f} "
        "dB</small></div>",
        html_escape(p.real_uri), html_escape(p.data_uri), html_escape(p.key), p.psnr);
  return out + "</div>";
}

/// One series a stage, so that a change of what is trained shows.
std::vector<Series> by_stage(const std::vector<StepRecord>& steps,
                             double (*value)(const StepRecord&)) {
  std::vector<Series> series;
  for (const StepRecord& step : steps) {
    const double figure = value(step);
    if (step.skipped || std::isnan(figure)) continue;
    if (series.empty() || series.back().name != step.stage) series.push_back({.name = step.stage});
    series.back().x.push_back(static_cast<double>(step.step));
    series.back().y.push_back(figure);
  }
  return series;
}

/// One line a name of a table of figures, over all steps that have it.
std::string split_chart(const std::vector<StepRecord>& steps, const char* title,
                        std::map<std::string, double> StepRecord::*table) {
  std::map<std::string, Series> lines;
  for (const StepRecord& step : steps) {
    for (const auto& [name, value] : step.*table) {
      if (std::isnan(value)) continue;
      Series& line = lines[name];
      line.name = name;
      line.x.push_back(static_cast<double>(step.step));
      line.y.push_back(value);
    }
  }
  if (lines.size() < 2) return "";  // one line says what the whole says
  Chart chart{.title = title, .x_label = "global step"};
  for (auto& [name, line] : lines) chart.series.push_back(std::move(line));
  return draw_svg(chart);
}

std::string split_charts(const std::vector<StepRecord>& steps) {
  const std::string charts = split_chart(steps, "loss by modality", &StepRecord::loss_by) +
                             split_chart(steps, "loss by source", &StepRecord::loss_by_source) +
                             split_chart(steps, "gradient norm by part", &StepRecord::part_norms);
  return charts.empty() ? "" : "<h2>By modality, source and part</h2>" + charts;
}

std::string charts(const RunReport& report) {
  const std::vector<StepRecord>& steps = report.steps;
  const auto chart = [&](const char* title, const char* unit, double (*value)(const StepRecord&)) {
    return draw_svg({.title = title,
                     .x_label = "global step",
                     .y_label = unit,
                     .series = by_stage(steps, value)});
  };
  return "<h2>Loss by stage</h2>" +
         chart(report.of_pictures() ? "loss per picture" : "loss per target token", "",
               [](const StepRecord& s) { return s.loss; }) +
         chart("gradient norm before clipping", "",
               [](const StepRecord& s) { return s.grad_norm; }) +
         "<h2>Throughput and data wait</h2>" +
         (report.of_pictures()
              ? chart("pictures per second", "", [](const StepRecord& s) { return s.samples_s; })
              : chart("tokens per second", "", [](const StepRecord& s) { return s.tokens_s; })) +
         chart("model FLOPs utilisation (of the measured GEMM rate)", "",
               [](const StepRecord& s) { return s.mfu; }) +
         chart("data wait, ms a step", "", [](const StepRecord& s) { return s.data_wait_ms; }) +
         split_charts(steps);
}

std::string totals(const RunReport& report) {
  double seconds = 0, waited_of = 0, wait = 0;
  int64_t tokens = 0, images = 0;
  for (const StepRecord& s : report.steps) {
    if (std::isnan(s.step_ms)) continue;
    seconds += s.step_ms / 1e3, tokens += s.tokens, images += s.images;
    if (!std::isnan(s.data_wait_ms)) waited_of += s.step_ms / 1e3, wait += s.data_wait_ms / 1e3;
  }
  const int64_t unit = report.of_pictures() ? images : tokens;
  return fmt::format(
      "<p>{} steps, {:.1f} s of step time, {} tokens, {} pictures, {:.0f} {}/s, data wait {:.2f} % "
      "of step time.</p>",
      report.steps.size(), seconds, tokens, images,
      seconds > 0 ? static_cast<double>(unit) / seconds : 0,
      report.of_pictures() ? "pictures" : "tokens", waited_of > 0 ? 100 * wait / waited_of : 0);
}

std::string family_of(const std::string& recipe) {
  const std::string usual = RunReport().family;
  try {
    return toml::parse(recipe)["model"]["family"].value_or(usual);
  } catch (const toml::parse_error&) {
    return usual;  // the page shows the rest
  }
}

}  // namespace

bool RunReport::of_pictures() const {
  return family == "dit" || family == "pixart" || family == "sd3" || family == "vae";
}

std::string render_report(const RunReport& report) {
  std::string page;
  if (!report.steps.empty()) page += totals(report);
  if (report.evaluation) page += scores(*report.evaluation);
  if (!report.steps.empty()) page += charts(report);
  if (report.evaluation && !report.evaluation->pictures.empty())
    page += (report.evaluation->pictures.front().real_uri.empty()
                 ? "<h2>Held-out pictures: true name in bold, the model's below</h2>"
                 : "<h2>Held-out names: the real picture, the drawn one, and what the judge calls "
                   "it</h2>") +
            picture_cards(*report.evaluation);
  if (report.evaluation && !report.evaluation->rebuilt.empty())
    page += "<h2>Held-out pictures, each beside its reconstruction</h2>" +
            rebuilt_cards(*report.evaluation);
  if (!report.recipe.empty())
    page += "<h2>Recipe</h2><pre>" + html_escape(report.recipe) + "</pre>";
  return report_page(report.title, page);
}

RunReport load_report(const std::filesystem::path& run_directory) {
  RunReport report{.title = "mmkit run " + run_directory.filename().string(),
                   .steps = read_metrics(run_directory)};
  if (std::filesystem::exists(run_directory / "recipe.toml"))
    report.recipe = read_file(run_directory / "recipe.toml");
  report.family = family_of(report.recipe);
  if (std::filesystem::exists(run_directory / "eval.json"))
    report.evaluation = read_eval(run_directory / "eval.json");
  if (report.steps.empty() && !report.evaluation) {
    throw DataError("{}: neither metrics.jsonl nor eval.json in it; expected a run's directory",
                    run_directory.string());
  }
  return report;
}

}  // namespace mm::run
