#include "lib/run/patient_work.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <future>

#include "lib/run/comm.h"

namespace mm::run {
namespace {

struct StopAtExit {
  std::stop_source source;
  ~StopAtExit() { source.request_stop(); }
};

}  // namespace

void work_patiently(dist::Group& control, const std::function<void(const std::stop_token&)>& work,
                    std::chrono::duration<double> beat) {
  std::future<void> done;
  StopAtExit stop;  // ends before `done`, which waits for the thread
  if (work) {
    const auto on_thread = [&work, threads = at::get_num_threads(),
                            token = stop.source.get_token()] {
      at::set_num_threads(threads);  // a new thread would take all cores
      work(token);
    };
    done = std::async(std::launch::async, on_thread);
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
