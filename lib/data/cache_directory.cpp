#include "lib/data/cache_directory.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/random_hex.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarker = "mmkit-cache.json";

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

uint64_t bytes_below(const fs::path& directory) {
  uint64_t bytes = 0;
  for (const fs::path& path : entries_of(directory)) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    if (!error) bytes += size;
  }
  return bytes;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw IoError("{}: cannot delete: {}", path.string(), error.message());
}

void rename_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw IoError("{}: cannot rename into place: {}", to.string(), error.message());
}

std::string process_of(const fs::path& part) {
  const std::string name = part.filename().string();
  return name.substr(0, name.find('.'));
}

}  // namespace

/// Holds the directory's lock.
class CacheDirectory::Locked {
 public:
  explicit Locked(const fs::path& root) : file_(File::create(root / "lock", true)) {
    while (flock(file_.descriptor(), LOCK_EX) != 0) {
      if (errno != EINTR) {
        throw IoError("{}: cannot lock: {}; a cache needs a local file system",
                      file_.path().string(), std::generic_category().message(errno));
      }
    }
  }

 private:
  File file_;
};

CacheDirectory::CacheDirectory(fs::path directory, uint64_t budget_bytes, CacheFault fault)
    : root_(std::move(directory)),
      budget_bytes_(budget_bytes),
      fault_(std::move(fault)),
      process_(fmt::format("{}-{}", getpid(), random_hex(6))) {
  if (budget_bytes_ == 0) throw UsageError("{}: a cache of 0 bytes", root_.string());
  make_directory();
  const Locked lock(root_);
  if (!fs::exists(root_ / kMarker)) {
    write_file_atomic(root_ / kMarker, R"({"format":"mmkit-cache","version":1})"
                                       "\n");
  }
  for (const char* name : {"files", "parts", "procs"}) fs::create_directories(root_ / name);
  alive_ = File::create(root_ / "procs" / (process_ + ".lock"));
  if (flock(alive_->descriptor(), LOCK_EX | LOCK_NB) != 0)
    throw IoError("{}: cannot lock; a cache needs a local file system", alive_->path().string());
  remove_dead();
}

bool CacheDirectory::has_marker() const {
  if (!fs::exists(root_ / kMarker)) return false;
  const Json marker = read_json_file(root_ / kMarker);
  if (marker.is_object() && marker.value("format", "") == "mmkit-cache" &&
      marker.value("version", 0) == 1) {
    return true;
  }
  throw UsageError("{}: a cache of another version; give another directory", root_.string());
}

void CacheDirectory::make_directory() const {
  fs::create_directories(root_);
  if (has_marker()) return;
  for (const fs::path& path : entries_of(root_)) {
    const std::string name = path.filename().string();
    if (name == "lock" || name.starts_with(kMarker)) continue;
    // Another process may be making the cache: it writes the marker before anything else.
    if (has_marker()) return;
    throw UsageError("{}: not empty and not a cache of mmkit; give a directory of its own",
                     root_.string());
  }
}

CacheDirectory::~CacheDirectory() {
  try {
    const Locked lock(root_);
    for (const char* ending : {".needs", ".lock"})
      remove_file(root_ / "procs" / (process_ + ending));
  } catch (const Error&) {
    // What stays is removed by the next process.
  }
}

void CacheDirectory::fault(std::string_view point) const {
  if (fault_) fault_(point);
}

std::optional<fs::path> CacheDirectory::find(const std::string& name) const {
  fs::path path = root_ / "files" / name;
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  return path;
}

void CacheDirectory::set_needs(const std::map<std::string, NextUse>& needs) {
  Json json = Json::object();
  for (const auto& [name, next] : needs) json[name] = next;
  const fs::path path = root_ / "procs" / (process_ + ".needs");
  const fs::path aside = path.string() + ".new";
  File file = File::create(aside);
  file.write(json.dump());
  file.close();
  rename_file(aside, path);
}

std::optional<fs::path> CacheDirectory::reserve(const std::string& name, uint64_t bytes,
                                                NextUse next_use) {
  const Locked lock(root_);
  remove_dead();
  if (find(name)) return std::nullopt;
  for (const fs::path& part : entries_of(root_ / "parts")) {
    if (part.filename().string() == process_of(part) + "." + name) return std::nullopt;
  }
  if (!make_room(bytes, next_use)) return std::nullopt;
  fault("room");
  fs::path part = root_ / "parts" / (process_ + "." + name);
  const File file = File::create(part);
  fault("part made");
  if (ftruncate(file.descriptor(), static_cast<off_t>(bytes)) != 0) {
    const int code = errno;
    remove_file(part);
    throw IoError("{}: cannot set its size to {}: {}", part.string(), bytes,
                  std::generic_category().message(code));
  }
  fault("part sized");
  return part;
}

void CacheDirectory::commit(const fs::path& part, const std::string& name) {
  const Locked lock(root_);
  fault("before rename");
  rename_file(part, root_ / "files" / name);
  fault("after rename");
}

void CacheDirectory::abandon(const fs::path& part) {
  const Locked lock(root_);
  remove_file(part);
}

void CacheDirectory::drop(const std::string& name) {
  const Locked lock(root_);
  remove_file(root_ / "files" / name);
}

uint64_t CacheDirectory::used_bytes() const {
  return bytes_below(root_ / "files") + bytes_below(root_ / "parts");
}

std::map<std::string, NextUse> CacheDirectory::all_needs() {
  std::map<std::string, NextUse> needs;
  for (const fs::path& path : entries_of(root_ / "procs")) {
    if (path.extension() != ".needs") continue;
    const Json json = read_json_file(path);
    if (!json.is_object()) continue;
    for (const auto& [name, next] : json.items()) {
      if (!next.is_number_unsigned()) continue;
      const auto [at, added] = needs.emplace(name, next.get<NextUse>());
      if (!added) at->second = std::min(at->second, next.get<NextUse>());
    }
  }
  return needs;
}

bool CacheDirectory::make_room(uint64_t bytes, NextUse next_use) {
  if (bytes > budget_bytes_) return false;
  uint64_t used = used_bytes();
  if (used <= budget_bytes_ - bytes) return true;
  const auto needs = all_needs();
  std::vector<std::pair<NextUse, fs::path>> victims;
  uint64_t gain = 0;
  for (const fs::path& path : entries_of(root_ / "files")) {
    const auto need = needs.find(path.filename().string());
    const NextUse next = need == needs.end() ? kNoUse : need->second;
    if (next <= next_use) continue;
    victims.emplace_back(next, path);
    gain += fs::file_size(path);
  }
  if (used - std::min(used, gain) > budget_bytes_ - bytes) return false;
  std::sort(victims.begin(), victims.end(), std::greater<>());
  for (const auto& [next, path] : victims) {
    if (used <= budget_bytes_ - bytes) break;
    used -= fs::file_size(path);
    fault("before delete");
    remove_file(path);
    fault("after delete");
  }
  return true;
}

bool CacheDirectory::is_dead(const std::string& process) const {
  const fs::path path = root_ / "procs" / (process + ".lock");
  if (process == process_) return false;
  if (!fs::exists(path)) return true;
  const File file = File::open_read(path);
  return flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0;  // closing drops it again
}

void CacheDirectory::remove_dead() {
  for (const fs::path& part : entries_of(root_ / "parts")) {
    if (is_dead(process_of(part))) remove_file(part);
  }
  // The lock file goes last: without it, parts would still be known as nobody's.
  for (const char* ending : {".needs.new", ".needs", ".lock"}) {
    for (const fs::path& path : entries_of(root_ / "procs")) {
      if (path.filename().string() == process_of(path) + ending && is_dead(process_of(path)))
        remove_file(path);
    }
  }
}

}  // namespace mm::data
