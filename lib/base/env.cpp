#include "lib/base/env.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"

namespace mm::env {

std::optional<std::string> get(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<int64_t> get_int(const std::string& name, int64_t min, int64_t max,
                               const Lookup& lookup) {
  const auto text = lookup(name);
  if (!text || text->empty()) return std::nullopt;
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end || value < min || value > max) {
    throw UsageError("environment variable {}: expected an integer from {} to {}, found \"{}\"",
                     name, min, max, escape_text(*text, 60));
  }
  return value;
}

std::vector<std::string> all() {
  std::vector<std::string> variables;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) variables.emplace_back(*at);
  return variables;
}

}  // namespace mm::env
