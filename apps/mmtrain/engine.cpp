// The engine's one door: a verb and its options as JSON in, the exit code out. No exception crosses
// it.
#include "lib/run/engine.h"

#include <string_view>

#include "lib/base/cli.h"
#include "lib/base/json.h"

extern "C" __attribute__((visibility("default"))) int mm_engine_run(const char* verb,
                                                                    const char* options) {
  const char* program = std::string_view(verb) == "encode" ? "mmshard" : "mmtrain";
  return mm::run_cli(
      program, [&] { return mm::run::run_verb(verb, mm::parse_json(options, "engine options")); });
}
