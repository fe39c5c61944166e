#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

// The only place that reads the process environment. A variable that is set but empty counts as not
// set.
namespace mm::env {

/// How code that is tested without the real environment looks a variable up.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

std::optional<std::string> get(const std::string& name);

/// The variable as a decimal integer in [min, max], nothing if it is not set. Throws UsageError
/// naming variable, text and range.
std::optional<int64_t> get_int(const std::string& name, int64_t min, int64_t max,
                               const Lookup& lookup = get);

/// All of it as NAME=value, for a child's environment.
std::vector<std::string> all();

}  // namespace mm::env
