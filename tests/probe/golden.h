#pragma once
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>

#include "lib/base/env.h"
#include "lib/base/file.h"

namespace mm::probe::test {

/// What differs from run to run, replaced: times, and `root` (a directory's name) by "ROOT".
inline std::string steady(std::string text, const std::string& root = "") {
  for (size_t at = 0; !root.empty() && (at = text.find(root)) != std::string::npos;)
    text.replace(at, root.size(), "ROOT");
  const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)");
  text = std::regex_replace(text, time, "TIME");
  text = std::regex_replace(text, std::regex(R"(\d+ inodes)"), "# inodes");
  return std::regex_replace(text, std::regex("\"seconds\": [-0-9.e]+"), "\"seconds\": #");
}

/// Measured figures replaced too: every number with a point, and blanks before it.
inline std::string without_figures(const std::string& text) {
  return std::regex_replace(text, std::regex(R"( *\b\d+\.\d+(e[-+]?\d+)?)"), " #");
}

/// Compares with tests/probe/golden/NAME. MM_WRITE_GOLDEN=1 writes the file instead, to be read
/// before it is committed.
inline void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path file =
      std::filesystem::path(MM_TEST_DATA) / "probe" / "golden" / name;
  CAPTURE(name);
  if (env::get("MM_WRITE_GOLDEN")) write_file_atomic(file, text);
  REQUIRE(std::filesystem::exists(file));
  CHECK(read_file(file, 1 << 22) == text);
}

}  // namespace mm::probe::test
