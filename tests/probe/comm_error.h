#pragma once
#include <functional>
#include <string>

#include "lib/base/error.h"

namespace mm::probe::test {

/// What a call that loses its peer says; "none" where it does not throw.
inline std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const CommError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace mm::probe::test
