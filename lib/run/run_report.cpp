#include "lib/run/run_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/html.h"
#include "lib/run/svg_chart.h"

namespace mm::run {
namespace {

constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--fg:#1f2328;--bg:#fff;--line:#d1d9e0;--soft:#f6f8fa;--ok:#1a7f37;--bad:#d1242f}
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--line:#30363d;--soft:#161b22;--ok:#3fb950;--bad:#f85149}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:1000px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid var(--line)}
table{border-collapse:collapse}td,th{padding:.25rem .8rem;border-bottom:1px solid var(--line);text-align:right}
td:first-child,th:first-child{text-align:left}
svg{max-width:100%;height:auto;background:var(--soft);border-radius:6px;margin:.4rem 0;display:block}
svg .grid{stroke:var(--line);stroke-width:.5}svg .tick{font-size:11px;fill:var(--fg)}svg .title{font-size:12px;font-weight:600;fill:var(--fg)}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:.6rem}
.card{border:1px solid var(--line);border-radius:6px;padding:.5rem;font-size:.8rem;background:var(--soft);overflow-wrap:anywhere}
.card img{display:block;width:72px;height:72px;margin:0 auto .3rem;image-rendering:auto;background:#fff;border-radius:4px}
.right{border-left:4px solid var(--ok)}.wrong{border-left:4px solid var(--bad)}
pre{background:var(--soft);padding:.8rem;border-radius:6px;overflow:auto;font-size:.8rem}
)css";

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

std::string picture_cards(const EvalResult& evaluation) {
  std::string out = "<div class='cards'>";
  for (const EvalPicture& p : evaluation.pictures) {
    const bool right = exact_match(p.outcome.truth, p.outcome.guess);
    out += fmt::format(
        "<div class='card {}'><img alt='' src='{}'><b>{}</b><br>{}<br><small>true name ranked "
        "{}</small></div>",
        right ? "right" : "wrong", html_escape(p.data_uri), html_escape(p.outcome.truth),
        html_escape(p.outcome.guess), p.outcome.rank + 1);
  }
  return out + "</div>";
}

/// One series a stage, so that a change of what is trained shows.
std::vector<Series> by_stage(const std::vector<StepRecord>& steps,
                             double (*value)(const StepRecord&)) {
  std::vector<Series> series;
  for (const StepRecord& step : steps) {
    if (step.skipped) continue;
    if (series.empty() || series.back().name != step.stage) series.push_back({.name = step.stage});
    series.back().x.push_back(static_cast<double>(step.step));
    series.back().y.push_back(value(step));
  }
  return series;
}

std::string charts(const std::vector<StepRecord>& steps) {
  const auto chart = [&](const char* title, const char* unit, double (*value)(const StepRecord&)) {
    return draw_svg({.title = title,
                     .x_label = "global step",
                     .y_label = unit,
                     .series = by_stage(steps, value)});
  };
  return "<h2>Loss by stage</h2>" +
         chart("loss per target token", "", [](const StepRecord& s) { return s.loss; }) +
         chart("gradient norm before clipping", "",
               [](const StepRecord& s) { return s.grad_norm; }) +
         "<h2>Throughput and data wait</h2>" +
         chart("tokens per second", "", [](const StepRecord& s) { return s.tokens_s; }) +
         chart("model FLOPs utilisation (of the measured GEMM rate)", "",
               [](const StepRecord& s) { return s.mfu; }) +
         chart("data wait, ms a step", "", [](const StepRecord& s) { return s.data_wait_ms; });
}

std::string totals(const std::vector<StepRecord>& steps) {
  double seconds = 0, wait = 0;
  int64_t tokens = 0, images = 0;
  for (const StepRecord& s : steps)
    seconds += s.step_ms / 1e3, wait += s.data_wait_ms / 1e3, tokens += s.tokens,
        images += s.images;
  return fmt::format(
      "<p>{} steps, {:.1f} s of step time, {} tokens, {} pictures, {:.0f} tokens/s, data wait "
      "{:.2f} % of step time.</p>",
      steps.size(), seconds, tokens, images,
      seconds > 0 ? static_cast<double>(tokens) / seconds : 0,
      seconds > 0 ? 100 * wait / seconds : 0);
}

}  // namespace

std::string render_report(const RunReport& report) {
  std::string page = fmt::format(
      "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width'><title>{0}</title>"
      "<style>{1}</style><h1>{0}</h1>",
      html_escape(report.title), kStyle);
  if (!report.steps.empty()) page += totals(report.steps);
  if (report.evaluation)
    page += "<h2>Held-out pictures: scores</h2>" + score_table(*report.evaluation);
  if (!report.steps.empty()) page += charts(report.steps);
  if (report.evaluation)
    page += "<h2>Held-out pictures: true name in bold, the model's below</h2>" +
            picture_cards(*report.evaluation);
  if (!report.recipe.empty())
    page += "<h2>Recipe</h2><pre>" + html_escape(report.recipe) + "</pre>";
  return page + "</html>\n";
}

RunReport load_report(const std::filesystem::path& run_directory) {
  RunReport report{.title = "mmkit run " + run_directory.filename().string(),
                   .steps = read_metrics(run_directory)};
  if (std::filesystem::exists(run_directory / "recipe.toml"))
    report.recipe = read_file(run_directory / "recipe.toml");
  if (std::filesystem::exists(run_directory / "eval.json")) {
    report.evaluation = EvalResult::from_json(read_json_file(run_directory / "eval.json"));
  }
  if (report.steps.empty() && !report.evaluation) {
    throw DataError("{}: neither metrics.jsonl nor eval.json in it; expected a run's directory",
                    run_directory.string());
  }
  return report;
}

}  // namespace mm::run
