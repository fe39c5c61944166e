#include "lib/step/verify.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/dist/thread_group.h"

using namespace mm;

TEST_CASE("verify_same_program: equal hashes pass, the ranks that differ are named on every rank") {
  dist::run_thread_ranks(
      3, {}, [](dist::Group& group) { CHECK_NOTHROW(step::verify_same_program(group, 42)); });
  dist::run_thread_ranks(3, {}, [](dist::Group& group) {
    std::string text;
    try {
      step::verify_same_program(group, group.rank() == 2 ? 43 : 42);
    } catch (const UsageError& error) {
      text = error.what();
    }
    CHECK(text.find("rank 0 has 000000000000002a, but rank 2 (000000000000002b)") !=
          std::string::npos);
  });
}
