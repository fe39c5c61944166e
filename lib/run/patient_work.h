#pragma once
#include <chrono>
#include <functional>
#include <stop_token>

#include "lib/dist/group.h"

namespace mm::run {

/// Collective over `control`: runs `work` on a thread of its own, on ranks that have any (empty:
/// none), while the calling thread meets the other ranks about every `beat`. No rank waits longer
/// than that for another, however long the work takes, so the group's deadline need not know of it;
/// a rank that dies is still noticed: then CommError is thrown as soon as `work` ends, which its
/// token asks it to. Returns when all ranks are done; an mm::Error of any is thrown on all, as
/// all_or_none does. `work` must not communicate.
void work_patiently(dist::Group& control, const std::function<void(const std::stop_token&)>& work,
                    std::chrono::duration<double> beat);

}  // namespace mm::run
