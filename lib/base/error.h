#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "lib/base/exit_code.h"

namespace mm {

/// Base of everything that mmkit throws. `what()` is one line: what, where, what was expected, what
/// to do. Throw one of the leaves below; catch in `main`, at a thread's entry, or at a rank's step
/// boundary.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, std::string message)
      : std::runtime_error(message), code_(code), message_(std::move(message)) {}
  ExitCode exit_code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }
  /// Puts "outer: " in front; each layer adds what only it knows. Use inside `catch (Error& e) {
  /// e.add_context(...); throw; }`.
  void add_context(const std::string& outer) { message_ = outer + ": " + message_; }

 private:
  ExitCode code_;
  std::string message_;
};

namespace detail {
template <ExitCode kCode>
class CodedError final : public Error {
 public:
  template <typename... Args>
  explicit CodedError(fmt::format_string<Args...> format, Args&&... args)
      : Error(kCode, fmt::format(format, std::forward<Args>(args)...)) {}
};
}  // namespace detail

using UsageError = detail::CodedError<ExitCode::kUsage>;          ///< recipe or flags
using DataError = detail::CodedError<ExitCode::kDataInvalid>;     ///< a file's content
using IoError = detail::CodedError<ExitCode::kStorage>;           ///< the file system
using CommError = detail::CodedError<ExitCode::kPeerLost>;        ///< peers, network, deadlines
using DeviceError = detail::CodedError<ExitCode::kUnhealthy>;     ///< node or accelerator
using NumericalError = detail::CodedError<ExitCode::kNumerical>;  ///< NaN, Inf, divergence
using InternalError = detail::CodedError<ExitCode::kInternal>;    ///< our bug

}  // namespace mm

/// Our own invariants: throws InternalError naming the condition and the place.
#define MM_CHECK(condition, ...)                                                               \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      throw ::mm::InternalError("{}:{}: {} does not hold: {}", __FILE__, __LINE__, #condition, \
                                fmt::format(__VA_ARGS__));                                     \
    }                                                                                          \
  } while (false)
