#pragma once
#include <exception>
#include <string>

namespace mm::dist {

/// Settles what c10d reads from the environment, once, before its first use: no log lines of its
/// own (it prints stack traces when a peer is lost; we report one line instead) unless
/// TORCH_CPP_LOG_LEVEL is set, and no flight recorder. Call it before other threads read the
/// environment.
void prepare_backend();

/// The first line of a backend's exception without its stack trace and source position.
std::string reason_of(const std::exception& error);

}  // namespace mm::dist
