#pragma once
#include <functional>

#include "lib/dist/gloo_group.h"
#include "lib/dist/group.h"
#include "lib/dist/rendezvous.h"
#include "lib/dist/single_group.h"
#include "lib/dist/thread_group.h"

namespace mm::dist {

/// Runs `body` as every rank of a single group, of thread groups of 2 and 4, and of Gloo groups of
/// 2, 3 and 4 ranks that are threads of this process. A failed REQUIRE of any rank fails the test.
inline void for_each_backend(const std::function<void(Group&)>& body) {
  constexpr std::chrono::seconds kDeadline{20};
  body(*make_single_group());
  for (const int ranks : {2, 4})
    run_thread_ranks(ranks, {.name = "threads", .timeout = kDeadline}, body);
  for (const int ranks : {2, 3, 4}) {
    const std::vector<Rendezvous> places = Rendezvous::in_process(ranks, kDeadline);
    run_thread_ranks(ranks, {.timeout = kDeadline}, [&](Group& thread) {
      const auto group = make_gloo_group(places[static_cast<size_t>(thread.rank())],
                                         {.name = "gloo", .timeout = kDeadline});
      body(*group);
    });
  }
}

}  // namespace mm::dist
