// One rank of a Gloo job: mm_dist_rank RANK WORLD PORT_FILE [DIES_AT]. Adds tensors twelve times;
// the rank that is given DIES_AT kills itself before that call. Prints "sum S" or the error; exit
// code 0, or that of the error.
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>

#include "lib/base/error.h"
#include "lib/dist/gloo_group.h"

int main(int argc, char** argv) {
  using namespace mm;
  if (argc < 4) return static_cast<int>(ExitCode::kUsage);
  const int dies_at = argc > 4 ? std::atoi(argv[4]) : -1;
  try {
    const dist::Rendezvous place = dist::Rendezvous::join({.port_file = argv[3],
                                                           .rank = std::atoi(argv[1]),
                                                           .world = std::atoi(argv[2]),
                                                           .job_id = "mp"});
    const auto group =
        dist::make_gloo_group(place, {.name = "data", .timeout = std::chrono::seconds(60)});
    double sum = 0;
    for (int call = 0; call < 12; ++call) {
      if (call == dies_at) raise(SIGKILL);
      const at::Tensor tensor = at::full({1000}, group->rank() + 0.5, at::kFloat);
      group->all_reduce_sum(tensor);
      sum += tensor[999].item<double>();
    }
    fmt::print("sum {}\n", sum);
    group->barrier();
    return 0;
  } catch (const Error& error) {
    fmt::print("{}\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
