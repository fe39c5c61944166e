#include "lib/run/eval_result.h"

#include <fmt/format.h>

#include <algorithm>

namespace mm::run {

Json EvalResult::to_json() const {
  Json json{{"schema", 1},
            {"data", data},
            {"step", step},
            {"scores", Json::object()},
            {"pictures", Json::array()}};
  for (const EvalRow& row : rows) {
    json["scores"][row.name] = {
        {"samples", row.score.samples},      {"exact_match", row.score.exact},
        {"word_f1", row.score.f1},           {"recall_at_1", row.score.recall_1},
        {"recall_at_5", row.score.recall_5}, {"recall_at_10", row.score.recall_10}};
  }
  for (const EvalPicture& p : pictures) {
    json["pictures"].push_back({{"key", p.key},
                                {"truth", p.outcome.truth},
                                {"guess", p.outcome.guess},
                                {"right", exact_match(p.outcome.truth, p.outcome.guess)},
                                {"rank", p.outcome.rank + 1},
                                {"picture", p.data_uri}});
    if (!p.real_uri.empty()) json["pictures"].back()["real"] = p.real_uri;
  }
  for (const RebuiltPicture& p : rebuilt)
    json["rebuilt"].push_back(
        {{"key", p.key}, {"psnr", p.psnr}, {"real", p.real_uri}, {"picture", p.data_uri}});
  if (!tasks.empty()) json["tasks"] = tasks;
  return json;
}

EvalResult EvalResult::from_json(const Json& json) {
  EvalResult result{.data = json.value("data", ""), .step = json.value("step", int64_t{0})};
  result.tasks = json.value("tasks", Json::object());
  const Json scores = json.value("scores", Json::object());
  for (const auto& [name, s] : scores.items()) {
    result.rows.push_back(
        {name,
         {s.value("samples", size_t{0}), s.value("exact_match", 0.0), s.value("word_f1", 0.0),
          s.value("recall_at_1", 0.0), s.value("recall_at_5", 0.0), s.value("recall_at_10", 0.0)}});
  }
  for (const Json& p : json.value("rebuilt", Json::array()))
    result.rebuilt.push_back(
        {p.value("key", ""), p.value("psnr", 0.0), p.value("real", ""), p.value("picture", "")});
  const Json pictures = json.value("pictures", Json::array());
  for (const Json& p : pictures) {
    result.pictures.push_back(
        {p.value("key", ""),
         {p.value("truth", ""), p.value("guess", ""), p.value("rank", size_t{1}) - 1},
         p.value("picture", ""),
         p.value("real", "")});
  }
  return result;
}

void EvalResult::keep(const EvalResult& before) {
  if (before.step != step) return;
  for (const auto& [name, figures] : before.tasks.items()) {
    if (!tasks.contains(name)) tasks[name] = figures;
  }
  if (!rows.empty() || before.rows.empty()) return;
  rows = before.rows;
  pictures = before.pictures;
  data = before.data;
}

std::string EvalResult::task_lines() const {
  const auto line_of = [](const auto& self, const Json& figures) -> std::string {
    std::string line;
    for (const auto& [name, value] : figures.items()) {
      if (value.is_object())
        line += fmt::format("  {}:{}", name, self(self, value));
      else if (value.is_number_float())
        line += fmt::format("  {} {:.4f}", name, value.template get<double>());
      else
        line += fmt::format("  {} {}", name, value.dump());
    }
    return line;
  };
  std::string out;
  for (const auto& [task, figures] : tasks.items())
    out += fmt::format("{:<11}{}\n", task, line_of(line_of, figures));
  return out;
}

std::string EvalResult::table(size_t limit) const {
  size_t width = 9;
  for (const EvalPicture& p : pictures) width = std::max(width, p.outcome.truth.size());
  width = std::min<size_t>(width, 44);
  std::string out = fmt::format("        {:<{}}  {}\n", "true name", width, "model's name");
  for (size_t i = 0; i < std::min(limit, pictures.size()); ++i) {
    const NamedPicture& o = pictures[i].outcome;
    out += fmt::format("{:<6}  {:<{}}  {:.{}}\n", exact_match(o.truth, o.guess) ? "right" : "wrong",
                       o.truth.substr(0, width), width, o.guess, width + 12);
  }
  if (limit < pictures.size())
    out += fmt::format("... and {} more (eval.json, report.html)\n", pictures.size() - limit);
  out += fmt::format("\n{:<26} {:>12} {:>9} {:>10} {:>10} {:>10}\n",
                     fmt::format("{} held-out pictures", pictures.size()), "exact match", "word F1",
                     "recall@1", "recall@5", "recall@10");
  for (const EvalRow& row : rows) {
    const NameScore& s = row.score;
    out += fmt::format("{:<26} {:>10.1f} % {:>7.1f} % {:>8.1f} % {:>8.1f} % {:>8.1f} %\n", row.name,
                       100 * s.exact, 100 * s.f1, 100 * s.recall_1, 100 * s.recall_5,
                       100 * s.recall_10);
  }
  return out;
}

}  // namespace mm::run
