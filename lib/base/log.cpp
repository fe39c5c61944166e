#include "lib/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"

namespace mm::log {
namespace {

constexpr size_t kMaxSentenceBytes = 4000;

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void install(const Options& options) {
  std::vector<spdlog::sink_ptr> sinks{std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  if (!options.file.empty()) {
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file));
    } catch (const spdlog::spdlog_ex& e) {
      throw IoError("{}: cannot open log: {}", options.file, e.what());
    }
  }
  auto logger = std::make_shared<spdlog::logger>("mmkit", sinks.begin(), sinks.end());
  const std::string rank = options.rank >= 0 ? fmt::format(" rank={}", options.rank) : "";
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l" + rank + " %v", spdlog::pattern_time_type::utc);
  logger->set_level(to_spdlog(options.level));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

std::string quoted_if_needed(std::string_view raw) {
  std::string text = escape_text(raw, kMaxSentenceBytes);
  const bool plain = !text.empty() && text.find_first_of(" \"=") == std::string::npos;
  if (plain) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

void configure(const Options& options) { install(options); }

void write(Level level, std::string_view module, std::string_view sentence,
           std::initializer_list<Field> fields) {
  // A line before configure() must not go to spdlog's own default, which is stdout.
  static const bool once = [] {
    if (spdlog::default_logger_raw()->name() != "mmkit") install({});
    return true;
  }();
  static_cast<void>(once);
  spdlog::logger* logger = spdlog::default_logger_raw();
  if (!logger->should_log(to_spdlog(level))) return;
  std::string line = fmt::format("{}: {}", module, escape_text(sentence, kMaxSentenceBytes));
  for (const Field& field : fields) {
    line += fmt::format(" {}={}", field.name, quoted_if_needed(field.value));
  }
  logger->log(to_spdlog(level), "{}", line);
}

}  // namespace mm::log
