#include <fmt/format.h>

#include "lib/base/file.h"
#include "lib/run/engine.h"
#include "lib/run/evaluation.h"

namespace mm::run {

int verb_eval(const Json& options) {
  const std::filesystem::path run = options.at("from").get<std::string>();
  const TrainedModel trained = open_trained(run);
  const auto set = data::Dataset::open(options.at("data").get<std::string>());
  const EvalResult result = evaluate_names(
      trained, *set,
      {.limit = options.at("limit"), .max_new_tokens = options.at("max_new_tokens")});
  write_file_atomic(run / "eval.json", result.to_json().dump() + "\n");
  if (options.at("json").get<bool>()) {
    fmt::print("{}\n", result.to_json().dump(2));
  } else {
    fmt::print("{}", result.table(options.at("rows")));
  }
  return 0;
}

}  // namespace mm::run
