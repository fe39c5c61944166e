#include "lib/base/run_dir.h"

#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/random_hex.h"
#include "lib/base/text_escape.h"

namespace mm {
namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;
constexpr size_t kRunIdBytes = 8;
constexpr uint64_t kMaxRunFileBytes = 1 << 16;
constexpr std::chrono::milliseconds kLockPoll{50};
constexpr std::array kFolders{"log", "tb", "ledger", "ckpt", "fault"};

fs::path run_file(const fs::path& path) { return path / "run.json"; }

std::string read_run_id(const fs::path& path) {
  const std::string file = run_file(path).string();
  const Json json = parse_json(read_file(file, kMaxRunFileBytes), file);
  if (!json.is_object() || !json.contains("run_id") || !json["run_id"].is_string() ||
      json.value("schema", Json(0)) != kSchema) {
    throw DataError("{}: expected {{\"schema\": {}, \"run_id\": ...}}", file, kSchema);
  }
  return json["run_id"].get<std::string>();
}

void make_directory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw IoError("{}: cannot make directory: {}", path.string(), error.message());
}

std::string holder(const fs::path& lock) {
  const std::string text = read_file(lock, kMaxRunFileBytes);
  return text.empty() ? "another process" : escape_text(text.substr(0, text.find('\n')));
}

bool try_lock(const File& file) {
  while (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno == EINTR) continue;
    log::warn("run", "the file system has no locks; two jobs could write one run",
              {{"path", file.path().string()}});
    return true;
  }
  return true;
}

}  // namespace

RunDir RunDir::create(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_directory(path, ignored)) {
    throw DataError("{}: is a file, expected a run directory or nothing", path.string());
  }
  make_directory(path);
  for (const char* folder : kFolders) make_directory(path / folder);
  if (!fs::exists(run_file(path), ignored)) {
    const Json json{{"schema", kSchema},
                    {"run_id", random_hex(kRunIdBytes)},
                    {"created", iso_time(system_clock().unix_ms())}};
    write_file_atomic(run_file(path), json.dump(2) + "\n");
  }
  return {path, read_run_id(path)};
}

RunDir RunDir::open(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(run_file(path), ignored)) {
    throw UsageError("{}: not a run directory (no run.json)", path.string());
  }
  return {path, read_run_id(path)};
}

fs::path RunDir::rank_log(int rank) const {
  return log_dir() / fmt::format("rank-{:05}.log", rank);
}

fs::path RunDir::rank_fault(int rank) const {
  return fault_dir() / fmt::format("rank-{:05}.json", rank);
}

RunLock RunLock::take(const RunDir& run, const std::string& owner, double wait_s) {
  const fs::path path = run.path() / "lock";
  const double deadline_s = system_clock().monotonic_s() + wait_s;
  // Appending: whoever does not get the lock must not wipe the holder's line.
  File file = File::create(path, /*append=*/true);
  while (!try_lock(file)) {
    if (system_clock().monotonic_s() >= deadline_s) {
      throw UsageError("{}: in use by {}; stop that job, or give another --run directory",
                       run.path().string(), holder(path));
    }
    std::this_thread::sleep_for(kLockPoll);
  }
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  if (::ftruncate(file.descriptor(), 0) != 0) throw IoError("{}: cannot truncate", path.string());
  file.write(fmt::format("process {} on {}, job {}, since {}\n", ::getpid(), host.data(), owner,
                         iso_time(system_clock().unix_ms())));
  return RunLock(std::move(file));
}

}  // namespace mm
