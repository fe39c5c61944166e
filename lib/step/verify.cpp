#include "lib/step/verify.h"

#include <fmt/format.h>

#include <string>

#include "lib/base/error.h"

namespace mm::step {

void verify_same_program(dist::Group& group, uint64_t hash) {
  const std::vector<std::string> hashes = group.all_gather_bytes(fmt::format("{:016x}", hash));
  std::string different;
  for (size_t r = 1; r < hashes.size(); ++r) {
    if (hashes[r] != hashes[0])
      different += fmt::format("{}{} ({})", different.empty() ? "" : ", ", r, hashes[r]);
  }
  if (different.empty()) return;
  throw UsageError(
      "group {}: the step program differs between ranks: rank 0 has {}, but rank {}; start every "
      "rank with the same recipe, data "
      "set and build",
      group.name(), hashes[0], different);
}

}  // namespace mm::step
