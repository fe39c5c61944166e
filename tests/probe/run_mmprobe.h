#pragma once
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace mm::probe::test {

struct Run {
  int exit_code;
  std::string output;  ///< both streams
};

/// The program itself; `before` stands in front of it (variables, srun).
inline Run mmprobe(const std::string& arguments, const std::string& before = "") {
  const std::string command = before + " " MM_BIN_DIR "/mmprobe " + arguments + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Run run{0, {}};
  char part[4096];
  while (const size_t got = std::fread(part, 1, sizeof(part), pipe)) run.output.append(part, got);
  run.exit_code = WEXITSTATUS(::pclose(pipe));
  return run;
}

}  // namespace mm::probe::test
