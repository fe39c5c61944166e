#include "lib/base/verdict.h"

#include <utility>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/signals.h"

namespace mm {
namespace {

constexpr int kSchema = 1;
constexpr int kSignalBase = 128;
constexpr uint64_t kMaxBytes = 1 << 20;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename T>
std::optional<T> integer(const Json& json, const char* key, const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  if (!found->is_number_integer()) throw DataError("{}: {}: expected an integer", file, key);
  return found->get<T>();
}

std::string text(const Json& json, const char* key, const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return "";
  if (!found->is_string()) throw DataError("{}: {}: expected a string", file, key);
  return found->get<std::string>();
}

}  // namespace

std::string exit_word(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::kDone:
      return "done";
    case ExitCode::kDiffers:
      return "differs";
    case ExitCode::kUsage:
      return "usage";
    case ExitCode::kDataInvalid:
      return "data_invalid";
    case ExitCode::kUnhealthy:
      return "unhealthy";
    case ExitCode::kInternal:
      return "internal";
    case ExitCode::kStorage:
      return "storage";
    case ExitCode::kSavedRunAgain:
      return "saved_run_again";
    case ExitCode::kPeerLost:
      return "peer_lost";
    case ExitCode::kNumerical:
      return "numerical";
    case ExitCode::kDoNotRestart:
      return "do_not_restart";
    case ExitCode::kOwnTimeLimit:
      return "time_limit";
  }
  return code > kSignalBase && code <= kSignalBase + 64 ? "signal" : "unknown";
}

void write_verdict(const std::filesystem::path& path, const Verdict& verdict) {
  const Json signal_text = verdict.signal ? Json(signal_name(*verdict.signal)) : Json(nullptr);
  const Json json{{"schema", kSchema},
                  {"code", verdict.code},
                  {"word", exit_word(verdict.code)},
                  {"message", verdict.message},
                  {"rank", or_null(verdict.rank)},
                  {"host", verdict.host.empty() ? Json(nullptr) : Json(verdict.host)},
                  {"signal", or_null(verdict.signal)},
                  {"signal_name", signal_text},
                  {"step", or_null(verdict.step)},
                  {"time", iso_time(verdict.unix_ms)},
                  {"unix_ms", verdict.unix_ms}};
  write_file_atomic(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<Verdict> read_verdict(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  const std::string file = path.string();
  const Json json = parse_json(read_file(path, kMaxBytes), file);
  if (!json.is_object()) throw DataError("{}: expected an object", file);
  if (integer<int>(json, "schema", file) != kSchema) {
    throw DataError("{}: schema: expected {}; written by another version?", file, kSchema);
  }
  const auto code = integer<int>(json, "code", file);
  if (!code) throw DataError("{}: code is missing", file);
  Verdict verdict;
  verdict.code = *code;
  verdict.message = text(json, "message", file);
  verdict.rank = integer<int>(json, "rank", file);
  verdict.host = text(json, "host", file);
  verdict.signal = integer<int>(json, "signal", file);
  verdict.step = integer<int64_t>(json, "step", file);
  verdict.unix_ms = integer<int64_t>(json, "unix_ms", file).value_or(0);
  return verdict;
}

}  // namespace mm
