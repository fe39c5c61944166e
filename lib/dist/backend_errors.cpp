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

void prepare_backend() {
  static std::once_flag once;
  std::call_once(once, [] {
    setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
    c10::initLogging();
    // The recorder of LibTorch 2.11 inserts into a map of the whole process outside its lock: two
    // groups that start a collective at the same moment on two threads crash in it.
    setenv("TORCH_FR_BUFFER_SIZE", "0", 1);
    setenv("TORCH_NCCL_TRACE_BUFFER_SIZE", "0", 1);
  });
}

std::string reason_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string_view text =
      torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  return std::string(without_position(text.substr(0, text.find('\n'))));
}

}  // namespace mm::dist
