#pragma once
#include <exception>
#include <string>

namespace mm::dist {

/// Turns off the backend's own log lines (c10d prints stack traces when a peer is lost; we report
/// one line instead). Sets TORCH_CPP_LOG_LEVEL=FATAL unless the user set it. The first call wins;
/// make it before other threads read the environment.
void quiet_backend_logs();

/// The first line of a backend's exception without its stack trace and source position.
std::string reason_of(const std::exception& error);

}  // namespace mm::dist
