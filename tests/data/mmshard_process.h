#pragma once
// Starts the real mmshard as a shell would.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "lib/base/file.h"
#include "tests/data/tiny_dataset.h"

namespace mm::data::test {

struct Output {
  int code = -1;
  std::string out, err;
};

/// Runs mmshard with arguments as a shell reads them, in `dir`.
inline Output mmshard(const TempDir& dir, const std::string& arguments) {
  const std::string command = fmt::format("cd '{}' && '{}/mmshard' {} >stdout 2>stderr",
                                          dir.path().string(), MM_BIN_DIR, arguments);
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), read_file(dir / "stdout"), read_file(dir / "stderr")};
}

}  // namespace mm::data::test
