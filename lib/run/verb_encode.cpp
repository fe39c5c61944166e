#include <fmt/format.h>

#include "lib/data/pack_tasks.h"
#include "lib/run/encode_dataset.h"
#include "lib/run/engine.h"

namespace mm::run {

int verb_encode(const Json& options) {
  const data::TaskShare share = data::read_task_share();
  const EncodeOptions encode{.dataset = options.at("dataset").get<std::string>(),
                             .encoders = encoder_options(options),
                             .output = options.at("out").get<std::string>(),
                             .mean_only = options.at("mean_only"),
                             .dtype = options.at("dtype"),
                             .rank = share.task,
                             .world = share.tasks,
                             .threads = options.at("threads"),
                             .bad_limit = options.at("bad_percent").get<double>() / 100,
                             .on_unit =
                                 [](uint64_t done, uint64_t of) {
                                   if (done % 16 == 0)
                                     fmt::print(stderr, "encode: {} units, {} in all\n", done, of);
                                 },
                             .on_absent =
                                 [](const AbsentRow& absent) {
                                   fmt::print(stderr, "encode: row {} is left out: {}\n",
                                              absent.row, absent.reason);
                                 }};
  const EncodeResult result = encode_dataset(encode);
  if (options.at("json").get<bool>()) {
    fmt::print("{}\n", Json{{"schema", 1},
                            {"out", encode.output.string()},
                            {"rank", share.task},
                            {"units", result.units},
                            {"made", result.made},
                            {"present", result.present},
                            {"absent", result.absent},
                            {"complete", result.complete}}
                           .dump(2));
    return 0;
  }
  const std::string absent =
      result.absent > 0 ? fmt::format(", {} rows absent", result.absent) : "";
  fmt::print("{}: {} of {} units made here, {} were there; {}{}\n", encode.output.string(),
             result.made, result.units, result.present,
             result.complete ? "complete" : "other ranks are at work", absent);
  return 0;
}

}  // namespace mm::run
