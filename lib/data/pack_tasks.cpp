#include "lib/data/pack_tasks.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/random_hex.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

/// Where a process number means the same process: this boot of this kernel, this PID namespace.
std::string process_space() {
  std::error_code error;
  std::string boot;
  if (fs::exists("/proc/sys/kernel/random/boot_id", error))
    boot = read_file("/proc/sys/kernel/random/boot_id");
  while (!boot.empty() && boot.back() == '\n') boot.pop_back();
  const fs::path space = fs::read_symlink("/proc/self/ns/pid", error);
  return boot + (error ? "" : space.string());
}

std::string new_id() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("{}.{}.{}", host.data(), getpid(), random_hex(6));
}

/// Content of a small file, or nothing when it is not there (any more).
std::optional<std::string> read_if_there(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    return read_file(path, 4096);
  } catch (const IoError&) {
    return std::nullopt;  // gone, or replaced on a network file system, between the two calls
  }
}

/// `path` appears with the content of `from`, whole and at once: 0, or errno (EEXIST: it was
/// there).
int appear(const fs::path& from, const fs::path& path) {
  if (::link(from.c_str(), path.c_str()) == 0) return 0;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno;
  ::close(fd);
  write_file_atomic(path, read_file(from));
  return 0;
}

/// Killed, and its parent has not asked for its status yet.
bool is_zombie(long pid) {
  const auto stat = read_if_there(fmt::format("/proc/{}/stat", pid));
  if (!stat) return false;
  const size_t name_end = stat->rfind(')');  // the name may hold blanks and brackets itself
  return name_end != std::string::npos && name_end + 2 < stat->size() &&
         (*stat)[name_end + 2] == 'Z';
}

bool process_is_gone(const std::string& beat) {
  std::istringstream in(beat);
  std::string space;
  long pid = 0;
  if (!(in >> space >> pid) || pid <= 0 || space != process_space()) return false;
  return (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) || is_zombie(pid);
}

}  // namespace

TaskShare read_task_share(const env::Lookup& lookup) {
  constexpr int64_t kMost = 1 << 20;
  const auto pair = [&](const char* task, const char* tasks) -> std::optional<TaskShare> {
    const auto index = env::get_int(task, 0, kMost - 1, lookup);
    const auto count = env::get_int(tasks, 1, kMost, lookup);
    if (!index && !count) return std::nullopt;
    if (!index || !count || *index >= *count) {
      throw UsageError("environment: {} = {} and {} = {} do not name a task of a job", task,
                       index ? std::to_string(*index) : "nothing", tasks,
                       count ? std::to_string(*count) : "nothing");
    }
    return TaskShare{static_cast<int>(*index), static_cast<int>(*count)};
  };
  if (const auto share = pair("RANK", "WORLD_SIZE")) return *share;
  // A login shell inside an allocation has SLURM_NTASKS alone: no task of it.
  if (lookup("SLURM_PROCID")) return pair("SLURM_PROCID", "SLURM_NTASKS").value_or(TaskShare{});
  return {};
}

TaskBoard::TaskBoard(fs::path root, double dead_after_s)
    : root_(std::move(root)),
      dead_after_s_(dead_after_s),
      id_(new_id()),
      aside_(root_ / "aside" / id_) {
  for (const char* name : {"tasks", "claims"}) fs::create_directories(root_ / name);
  fs::create_directories(aside_);
  write_beat(0);
  write_claim_source();
  for (const auto& entry : fs::directory_iterator(root_ / "tasks")) {
    const auto beat = read_if_there(entry.path());
    if (beat && process_is_gone(*beat)) bury(entry.path().filename().string());
  }
  heart_ = std::thread([this] { beat_until_stopped(); });
}

TaskBoard::~TaskBoard() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  heart_.join();
  bury(id_);
}

void TaskBoard::beat_until_stopped() {
  const std::chrono::duration<double> interval(std::max(0.02, dead_after_s_ / 20));
  std::unique_lock lock(mutex_);
  for (uint64_t count = 1; !changed_.wait_for(lock, interval, [&] { return stop_; }); ++count) {
    lock.unlock();
    try {
      write_beat(count);
    } catch (const IoError&) {
      // The workspace is gone: another task finished the set. Or the disk is: the work itself will
      // say so, and others take over meanwhile.
    }
    lock.lock();
  }
}

void TaskBoard::write_beat(uint64_t count) const {
  const fs::path path = aside("beat");
  File file = File::create(path);
  file.write(fmt::format("{} {} {}\n", process_space(), getpid(), count));
  file.close();
  std::error_code error;
  fs::rename(path, root_ / "tasks" / id_, error);
  if (error) throw IoError("{}: cannot write a heartbeat: {}", root_.string(), error.message());
}

void TaskBoard::write_claim_source() {
  File file = File::create(aside(fmt::format("claim-{}", ++sources_)));
  file.write(id_);
  file.close();
}

void TaskBoard::write(const fs::path& path, std::string_view content) const {
  const fs::path from = aside(path.filename().string());
  File file = File::create(from);
  file.write(content);
  file.sync();
  file.close();
  std::error_code error;
  fs::rename(from, path, error);
  if (error) throw IoError("{}: cannot rename into place: {}", path.string(), error.message());
  fsync_directory(path.parent_path());
}

bool TaskBoard::write_new(const fs::path& path, std::string_view content) const {
  const fs::path from = aside(path.filename().string());
  File file = File::create(from);
  file.write(content);
  file.sync();
  file.close();
  const int code = appear(from, path);
  if (code != 0 && code != EEXIST) {
    throw IoError("{}: cannot write: {}", path.string(), std::generic_category().message(code));
  }
  fsync_directory(path.parent_path());
  return code == 0;
}

fs::path TaskBoard::claim_path(const std::string& work, int generation) const {
  return root_ / "claims" / fmt::format("{}.{}", work, generation);
}

int TaskBoard::claims_of(const std::string& work) const {
  std::error_code error;
  int count = 0;
  while (fs::exists(claim_path(work, count), error)) ++count;
  return count;
}

std::string TaskBoard::owner(const std::string& work) const {
  const int claims = claims_of(work);
  if (claims == 0) return {};
  return read_if_there(claim_path(work, claims - 1)).value_or("");
}

bool TaskBoard::is_free(const std::string& work) {
  const std::string who = owner(work);
  return who.empty() || is_dead(who);
}

bool TaskBoard::claim(const std::string& work) {
  const int claims = claims_of(work);
  if (claims > 0) {
    const auto who = read_if_there(claim_path(work, claims - 1));
    if (!who || !is_dead(*who)) return false;
  }
  return link_claim(claim_path(work, claims));
}

bool TaskBoard::link_claim(const fs::path& path) {
  const std::scoped_lock lock(mutex_);
  while (true) {
    const fs::path source = aside(fmt::format("claim-{}", sources_));
    const int code = appear(source, path);
    if (code == 0) break;
    if (code == EMLINK) {
      write_claim_source();
      continue;
    }
    if (code != EEXIST) {
      throw IoError("{}: cannot claim work: {}", path.string(),
                    std::generic_category().message(code));
    }
    // NFS may repeat a request whose answer was lost; then the link that is there is ours.
    if (read_if_there(path) != id_ || mine_.contains(path.string())) return false;
    break;
  }
  mine_.insert(path.string());
  return true;
}

bool TaskBoard::is_dead(const std::string& id) {
  if (id == id_) return false;
  const auto beat = read_if_there(root_ / "tasks" / id);
  if (!beat) return true;
  bool dead = process_is_gone(*beat);
  if (!dead) {
    const double now_s = system_clock().monotonic_s();
    const std::scoped_lock lock(mutex_);
    Sighting& last = seen_[id];
    if (last.beat != *beat) last = {*beat, now_s};
    dead = now_s - last.since_s > dead_after_s_;
  }
  return dead;
}

void TaskBoard::bury(const std::string& id) const {
  std::error_code error;  // leftovers go with the workspace
  fs::remove_all(root_ / "aside" / id, error);
  fs::remove(root_ / "tasks" / id, error);
}

}  // namespace mm::data
