#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/run/name_score.h"

namespace mm::run {

/// One held-out picture and what the trained model calls it.
struct EvalPicture {
  std::string key;  ///< of the data set's record
  NamedPicture outcome;
  std::string data_uri;  ///< the picture as the model saw it, PNG
  std::string real_uri;  ///< beside a drawn picture: the real one of that name; else empty
};

/// A held-out picture, and what an autoencoder makes of it.
struct RebuiltPicture {
  std::string key;       ///< of the data set's record
  double psnr = 0;       ///< dB
  std::string real_uri;  ///< PNG
  std::string data_uri;  ///< rebuilt, PNG
};

/// Scores of one way to ask: the trained model, the untrained one, the trained one fed a blank
/// picture.
struct EvalRow {
  std::string name;
  NameScore score;
};

/// RUN/eval.json, what the table and the report show.
struct EvalResult {
  std::string data;           ///< data set directory
  int64_t step = 0;           ///< of the checkpoint
  std::vector<EvalRow> rows;  ///< "trained" first, then the baselines
  std::vector<EvalPicture> pictures;
  std::vector<RebuiltPicture> rebuilt;  ///< of autoencoders
  Json tasks = Json::object();          ///< figures of other tasks (task_scores.h), by their names
  /// All figures of the checkpoint: by data set, then by task; "names" has the scores by row.
  Json sets = Json::object();

  Json to_json() const;
  /// Throws Json::exception for values of other types.
  static EvalResult from_json(const Json& json);
  /// Puts scores and tasks into `sets` under `data`, and `data` into tasks that name no set.
  void file_by_set();
  /// Takes over what `before` says of the same checkpoint and this does not: sets and their tasks,
  /// tasks by their names, and scores with their pictures and data set if there are none here. Both
  /// were filed.
  void keep(const EvalResult& before);
  /// Text table: rows of scores in percent, then true name, model's name, right or wrong, for the
  /// first `limit` pictures.
  std::string table(size_t limit) const;
};

/// One line a task; "names" and the data sets of figures are left out.
std::string task_lines(const Json& tasks);

/// Reads an eval.json. Throws DataError naming the file.
EvalResult read_eval(const std::filesystem::path& path);

}  // namespace mm::run
