#include "lib/base/env.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "lib/base/error.h"
#include "tests/base/temp_dir.h"

namespace env = mm::env;

TEST_CASE("env: set, empty and absent variables") {
  ::setenv("MM_TEST_ENV", "value", 1);
  CHECK(env::get("MM_TEST_ENV") == "value");
  const auto all = env::all();
  CHECK(std::find(all.begin(), all.end(), "MM_TEST_ENV=value") != all.end());
  ::setenv("MM_TEST_ENV", "", 1);
  CHECK_FALSE(env::get("MM_TEST_ENV").has_value());
  ::unsetenv("MM_TEST_ENV");
  CHECK_FALSE(env::get("MM_TEST_ENV").has_value());
}

TEST_CASE("env::get_int: a whole number in range, or an error naming variable, range and text") {
  const auto read = [](const char* text) {
    return env::get_int("RANK", 0, 9,
                        [&](const std::string&) { return std::optional<std::string>(text); });
  };
  CHECK(read("7") == 7);
  CHECK_FALSE(read("").has_value());
  for (const char* bad : {"10", "-1", "1x", " 1", "1.0", "99999999999999999999"}) {
    CHECK(mm::test::message_of<mm::UsageError>([&] { read(bad); }) ==
          "environment variable RANK: expected an integer from 0 to 9, found \"" +
              std::string(bad) + "\"");
  }
}
