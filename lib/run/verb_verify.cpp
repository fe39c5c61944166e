#include <fmt/format.h>

#include "lib/run/engine.h"
#include "lib/run/verify_encoded.h"

namespace mm::run {

int verb_verify(const Json& options) {
  const std::filesystem::path directory = options.at("dataset").get<std::string>();
  const data::VerifyReport report = verify_encoded(directory, options.at("threads"));
  if (options.at("json").get<bool>())
    fmt::print("{}\n", to_json(report).dump(2));
  else
    fmt::print("{}", to_text(report, directory));
  return static_cast<int>(report.exit_code());
}

}  // namespace mm::run
