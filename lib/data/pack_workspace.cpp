#include "lib/data/pack_workspace.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/dataset_manifest.h"
#include "lib/data/pack_options.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

/// "out/" and "out" name the same set.
fs::path plain(const fs::path& output) {
  const fs::path normal = fs::absolute(output).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

fs::path workspace_of(const fs::path& output) { return plain(output).string() + ".partial"; }

/// Renamed first, so that tasks which still look at it see it go at once and make no new files in
/// it.
void remove_workspace(const fs::path& root) {
  const fs::path done = root.string() + ".done";
  std::error_code error;  // what stays is named as what it is and goes next time
  fs::remove_all(done, error);
  fs::rename(root, done, error);
  // Tasks that end together trip over one another here.
  for (int attempt = 0; attempt < 10 && fs::exists(done, error); ++attempt)
    fs::remove_all(done, error);
}

void remove_others(const fs::path& directory, const std::set<std::string>& files) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (!files.contains(entry.path().filename().string())) found.push_back(entry.path());
  }
  for (const fs::path& path : found) fs::remove_all(path);
}

/// The first task's options count, whoever else starts at the same moment.
void check_options(const fs::path& root, TaskBoard& board, const Json& options) {
  const auto path = root / "options.json";
  if (board.write_new(path, options.dump(2) + "\n")) return;
  if (const auto difference = first_difference(read_json_file(path), options)) {
    throw UsageError("{}: begun with other options ({}); finish it with those, or delete it",
                     root.string(), *difference);
  }
}

}  // namespace

PackWorkspace::PackWorkspace(const fs::path& output, const Json& options, double dead_after_s)
    : output_(plain(output)),
      root_(workspace_of(output)),
      board_(root_, dead_after_s),
      units_(root_ / "units"),
      set_(root_ / "set"),
      notes_(root_ / "notes") {
  check_options(root_, board_, options);
  for (const fs::path& directory : {units_, set_, notes_}) fs::create_directories(directory);
}

fs::path PackWorkspace::unit_path(uint32_t unit) const {
  return units_ / fmt::format("unit-{:06}.mmu", unit);
}

fs::path PackWorkspace::note_path(const std::string& shard) const {
  return notes_ / (shard + ".json");
}

bool PackWorkspace::published() const {
  std::error_code error;
  return fs::exists(output_ / "manifest.json", error);
}

void PackWorkspace::discard() { remove_workspace(root_); }

void PackWorkspace::discard_if_unused() {
  std::error_code error;  // then it stays
  if (!fs::is_empty(units_, error) || error) return;
  for (const auto& task : fs::directory_iterator(root_ / "tasks", error))
    if (task.path().filename() != board_.id()) return;
  if (!error) discard();
}

void PackWorkspace::publish(const std::set<std::string>& files) {
  remove_others(set_, files);
  fsync_directory(set_);
  std::error_code error;
  fs::rename(set_, output_, error);
  if (error && !published())
    throw IoError("{}: cannot rename into place: {}", output_.string(), error.message());
  fsync_directory(output_.parent_path());
  remove_workspace(root_);
}

void poll(const std::string& what, const std::function<uint64_t()>& progress,
          const std::function<bool()>& tick) {
  constexpr double kDeadlineS = 1800;
  double changed_s = system_clock().monotonic_s();
  uint64_t last = progress();
  for (std::chrono::milliseconds pause{10}; !tick();
       pause = std::min(2 * pause, std::chrono::milliseconds(2000))) {
    std::this_thread::sleep_for(pause);
    const double now_s = system_clock().monotonic_s();
    if (const uint64_t now = progress(); now != last) {
      last = now;
      changed_s = now_s;
    }
    if (now_s - changed_s > kDeadlineS) {
      throw IoError("{}: no progress for {:.0f} s; is its machine alive?", what, kDeadlineS);
    }
  }
}

bool already_packed(const fs::path& output, const Json& options) {
  const fs::path path = plain(output);
  if (!fs::exists(path) || (fs::is_directory(path) && fs::is_empty(path))) return false;
  if (!fs::exists(path / "manifest.json")) {
    throw UsageError("{}: exists and is not a packed data set; give another --out, or remove it",
                     output.string());
  }
  if (const auto difference = first_difference(read_manifest(path).options, options)) {
    throw UsageError("{}: already packed with other options ({}); give another --out, or delete it",
                     output.string(), *difference);
  }
  remove_workspace(workspace_of(output));
  return true;
}

}  // namespace mm::data
