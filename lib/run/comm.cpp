#include "lib/run/comm.h"

#include <ATen/ATen.h>
#include <sys/resource.h>

#include "lib/base/error.h"

namespace mm::run {

std::vector<RankPulse> exchange(dist::Group& control, const RankPulse& mine) {
  static_assert(sizeof(RankPulse) % sizeof(double) == 0);
  constexpr int64_t kFields = sizeof(RankPulse) / sizeof(double);
  const at::Tensor in = at::empty({kFields}, at::kDouble),
                   out = at::empty({control.size() * kFields}, at::kDouble);
  std::memcpy(in.data_ptr(), &mine, sizeof(mine));
  control.all_gather(out, in);
  std::vector<RankPulse> all(static_cast<size_t>(control.size()));
  std::memcpy(all.data(), out.data_ptr(), all.size() * sizeof(RankPulse));
  return all;
}

void all_or_none(dist::Group& control, const std::function<void()>& work) {
  std::string failure;  // exit code, blank, message
  try {
    work();
  } catch (const Error& error) {
    failure = fmt::format("{} {}", static_cast<int>(error.exit_code()), error.what());
  }
  const std::vector<std::string> all = control.all_gather_bytes(failure);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const size_t blank = all[rank].find(' ');
    const std::string message = all[rank].substr(blank + 1);
    throw Error(static_cast<ExitCode>(std::stoi(all[rank])),
                static_cast<int>(rank) == control.rank()
                    ? message
                    : fmt::format("rank {}: {}", rank, message));
  }
}

double peak_memory_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

}  // namespace mm::run
