#pragma once
#include <functional>
#include <string_view>

namespace mm {

/// What `main` (or the engine's door) does around a verb: runs `body` and returns its exit code. An
/// Error becomes one line on stderr, "mmtrain: error: ...", and its own code; memory that ran out
/// and foreign exceptions become 70. Never throws.
int run_cli(std::string_view tool, const std::function<int()>& body) noexcept;

}  // namespace mm
