#include "apps/mmprobe/ranks.h"

#include <fmt/format.h>

#include <filesystem>

#include "lib/base/env.h"
#include "lib/base/file.h"
#include "lib/base/launcher.h"

namespace mm::mmprobe {
namespace {

// The arguments of this process, as the kernel keeps them.
std::vector<std::string> own_command() {
  const std::string text = read_file("/proc/self/cmdline", 1 << 20);
  std::vector<std::string> command(1);
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\0') {
      command.emplace_back();
    } else {
      command.back() += text[i];
    }
  }
  command[0] = std::filesystem::read_symlink("/proc/self/exe").string();
  return command;
}

}  // namespace

std::optional<int> launch_ranks(int nproc) {
  if (nproc == 0 || env::get("RANK")) return std::nullopt;
  const LaunchResult result = launch({.nproc = nproc, .command = own_command(), .grace_s = 2});
  if (result.exit_code != 0)
    fmt::print(stderr, "mmprobe: {}: {}\n", exit_word(result.exit_code), result.message);
  return result.exit_code;
}

}  // namespace mm::mmprobe
