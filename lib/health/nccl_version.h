#pragma once
#include <string>

namespace mm::health {

/// Version of NCCL ("2.27.5") in `library`, loaded in a child process; empty if there is none.
std::string nccl_version(const std::string& library, int deadline_ms = 2000);

/// 22705 -> "2.27.5"; versions before 2.9 count in hundreds.
std::string nccl_version_text(int version);

}  // namespace mm::health
