// One rank of a Gloo job: mm_dist_rank RANK WORLD PORT_FILE [kill|abort CALL]. Adds tensors twelve
// times; before that call the rank kills itself, or aborts and leaves. Prints "sum S" or the error;
// exit code 0, or that of the error.
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <string>

#include "lib/base/error.h"
#include "lib/dist/gloo_group.h"

int main(int argc, char** argv) {
  using namespace mm;
  if (argc < 4) return static_cast<int>(ExitCode::kUsage);
  const std::string fault = argc > 5 ? argv[4] : "";
  const int fault_at = argc > 5 ? std::atoi(argv[5]) : -1;
  try {
    const dist::Rendezvous place = dist::Rendezvous::join({.port_file = argv[3],
                                                           .rank = std::atoi(argv[1]),
                                                           .world = std::atoi(argv[2]),
                                                           .job_id = "mp"});
    const auto group =
        dist::make_gloo_group(place, {.name = "data", .timeout = std::chrono::seconds(60)});
    double sum = 0;
    for (int call = 0; call < 12; ++call) {
      if (call == fault_at && fault == "kill") raise(SIGKILL);
      if (call == fault_at && fault == "abort") {
        group->abort("lost its disk");
        throw IoError("rank {} lost its disk", group->rank());
      }
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
