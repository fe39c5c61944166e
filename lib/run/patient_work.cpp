#include "lib/run/patient_work.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <future>

#include "lib/run/comm.h"

namespace mm::run {

void work_patiently(dist::Group& control, const std::function<void()>& work,
                    std::chrono::duration<double> beat) {
  std::future<void> done;
  if (work) {
    done = std::async(std::launch::async, [&work, threads = at::get_num_threads()] {
      at::set_num_threads(threads);  // a new thread would take all cores
      work();
    });
  }
  const at::Tensor busy = at::empty({1}, at::kDouble);
  do {
    const bool mine = done.valid() && done.wait_for(beat) != std::future_status::ready;
    busy.fill_(mine ? 1 : 0);
    control.all_reduce_sum(busy);
  } while (busy.item<double>() > 0);
  all_or_none(control, [&] {
    if (done.valid()) done.get();
  });
}

}  // namespace mm::run
