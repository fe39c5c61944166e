#include "lib/base/cli.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <new>
#include <stdexcept>

#include "lib/base/error.h"

namespace {

template <typename E>
int code_of(E error) {
  return mm::run_cli("mmtest", [&]() -> int { throw error; });
}

}  // namespace

TEST_CASE("run_cli: the body's code, or the code of what it throws") {
  CHECK(mm::run_cli("mmtest", [] { return 1; }) == 1);
  CHECK(code_of(mm::UsageError("recipe {}", 1)) == 2);
  CHECK(code_of(mm::DataError("data")) == 65);
  CHECK(code_of(mm::DeviceError("node")) == 69);
  CHECK(code_of(mm::IoError("disk")) == 74);
  CHECK(code_of(mm::CommError("peer")) == 76);
  CHECK(code_of(mm::NumericalError("nan")) == 79);
  CHECK(code_of(mm::InternalError("bug")) == 70);
  CHECK(code_of(std::runtime_error("foreign")) == 70);
  CHECK(code_of(std::bad_alloc()) == 70);
  CHECK(code_of(std::filesystem::filesystem_error(
            "x", "a", std::make_error_code(std::errc::permission_denied))) == 74);
}

TEST_CASE("Error: context goes in front, layer by layer") {
  mm::DataError error("bad {}", "block");
  error.add_context("shard 3");
  error.add_context("epoch 1");
  CHECK(std::string(error.what()) == "epoch 1: shard 3: bad block");
}

TEST_CASE("MM_CHECK: says condition, place and message") {
  try {
    MM_CHECK(1 + 1 == 3, "sum {}", 2);
    FAIL("no error");
  } catch (const mm::InternalError& error) {
    CHECK(std::string(error.what()).find("1 + 1 == 3 does not hold: sum 2") != std::string::npos);
  }
}
