#include "lib/run/eval_result.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"

namespace mm::run {

namespace {

Json scores_json(const std::vector<EvalRow>& rows) {
  Json scores = Json::object();
  for (const EvalRow& row : rows) {
    scores[row.name] = {{"samples", row.score.samples},      {"exact_match", row.score.exact},
                        {"word_f1", row.score.f1},           {"recall_at_1", row.score.recall_1},
                        {"recall_at_5", row.score.recall_5}, {"recall_at_10", row.score.recall_10}};
  }
  return scores;
}

/// `value` where it is an object, or there is none.
const Json& object_of(const Json& json, const char* key) {
  static const Json kNone = Json::object();
  if (!json.contains(key)) return kNone;
  if (!json.at(key).is_object()) (void)json.at(key).at("");  // throws, saying the type
  return json.at(key);
}

std::string figures_text(const Json& figures) {
  std::string line;
  for (const auto& [name, value] : figures.items()) {
    if (value.is_object())
      line += fmt::format("  {}:{}", name, figures_text(value));
    else if (value.is_number_float())
      line += fmt::format("  {} {:.4f}", name, value.get<double>());
    else if (name != "data")
      line += fmt::format("  {} {}", name, value.dump());
  }
  return line;
}

}  // namespace

Json EvalResult::to_json() const {
  Json json{{"schema", 1},
            {"data", data},
            {"step", step},
            {"scores", scores_json(rows)},
            {"pictures", Json::array()}};
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
  if (!sets.empty()) json["sets"] = sets;
  return json;
}

EvalResult EvalResult::from_json(const Json& json) {
  EvalResult result{.data = json.value("data", ""), .step = json.value("step", int64_t{0})};
  result.tasks = object_of(json, "tasks");
  result.sets = object_of(json, "sets");
  for (const auto& [name, s] : object_of(json, "scores").items()) {
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
  if (result.sets.empty()) result.file_by_set();
  return result;
}

void EvalResult::file_by_set() {
  if (!rows.empty()) sets[data]["names"] = scores_json(rows);
  for (auto& [name, figures] : tasks.items()) {
    if (!figures.contains("data")) figures["data"] = data;
    sets[figures.at("data").get<std::string>()][name] = figures;
  }
}

void EvalResult::keep(const EvalResult& before) {
  if (before.step != step) return;
  for (const auto& [set, all] : before.sets.items()) {
    for (const auto& [name, figures] : all.items()) {
      if (!sets.contains(set) || !sets[set].contains(name)) sets[set][name] = figures;
    }
  }
  for (const auto& [name, figures] : before.tasks.items()) {
    if (!tasks.contains(name)) tasks[name] = figures;
  }
  if (!rows.empty() || before.rows.empty()) return;
  rows = before.rows;
  pictures = before.pictures;
  data = before.data;
}

std::string task_lines(const Json& tasks) {
  std::string out;
  for (const auto& [task, figures] : tasks.items()) {
    if (task != "names") out += fmt::format("{:<11}{}\n", task, figures_text(figures));
  }
  return out;
}

EvalResult read_eval(const std::filesystem::path& path) {
  try {
    return EvalResult::from_json(read_json_file(path));
  } catch (const Json::exception& error) {
    throw DataError("{}: no result of mmtrain eval: {}", path.string(), error.what());
  }
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
