#pragma once
#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace mm::log {

enum class Level { kDebug, kInfo, kWarn, kError };

/// A log field: a name with its unit ("wait_ms") and a value already as text.
struct Field {
  std::string_view name;
  std::string value;
  template <typename T>
  Field(std::string_view n, const T& v) : name(n), value(fmt::format("{}", v)) {}
};

/// Where lines go: stderr always, a file too if `file` is set. `rank` < 0 leaves the rank out. Call
/// once, early in main.
struct Options {
  Level level = Level::kInfo;
  int rank = -1;
  std::string file;
};
void configure(const Options& options);

/// One line an event: "2026-01-31T12:00:00.123Z info rank=3 data: slow shard read shard=00412
/// wait_ms=318". Thread-safe. Values with blanks are quoted. `module` is the lib directory's name.
void write(Level level, std::string_view module, std::string_view sentence,
           std::initializer_list<Field> fields = {});
inline void debug(std::string_view m, std::string_view s, std::initializer_list<Field> f = {}) {
  write(Level::kDebug, m, s, f);
}
inline void info(std::string_view m, std::string_view s, std::initializer_list<Field> f = {}) {
  write(Level::kInfo, m, s, f);
}
inline void warn(std::string_view m, std::string_view s, std::initializer_list<Field> f = {}) {
  write(Level::kWarn, m, s, f);
}
inline void error(std::string_view m, std::string_view s, std::initializer_list<Field> f = {}) {
  write(Level::kError, m, s, f);
}

}  // namespace mm::log
