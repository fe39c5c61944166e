#include "lib/dist/backend_errors.h"

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <cstdlib>
#include <mutex>
#include <string_view>

namespace mm::dist {
namespace {

/// "[/build/gloo/transport/tcp/pair.cc:553] Connection closed" -> "Connection closed".
std::string_view without_position(std::string_view line) {
  const size_t end = line.find("] ");
  const bool names_source = line.starts_with('[') && end != line.npos && line.find(".c") < end;
  return names_source ? line.substr(end + 2) : line;
}

}  // namespace

void quiet_backend_logs() {
  static std::once_flag once;
  std::call_once(once, [] {
    setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
    c10::initLogging();
  });
}

std::string reason_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string_view text =
      torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  return std::string(without_position(text.substr(0, text.find('\n'))));
}

}  // namespace mm::dist
