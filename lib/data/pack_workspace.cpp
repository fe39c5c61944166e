#include "lib/data/pack_workspace.h"

#include <sys/file.h>

#include <vector>

#include "lib/base/error.h"
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

File lock_workspace(const fs::path& root) {
  File lock = File::create(root / "lock", true);
  if (flock(lock.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    throw UsageError("{}: another mmshard pack is at work there; wait for it, or stop it",
                     root.string());
  }
  return lock;
}

template <typename Unwanted>
void remove_files(const fs::path& directory, Unwanted unwanted) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (unwanted(entry.path().filename().string())) found.push_back(entry.path());
  }
  for (const fs::path& path : found) fs::remove_all(path);
}

bool is_half_written(const std::string& name) { return name.find(".tmp") != std::string::npos; }

void check_options(const fs::path& root, const Json& options) {
  const auto path = root / "options.json";
  if (!fs::exists(path)) {
    write_file_atomic(path, options.dump(2) + "\n");
    return;
  }
  if (const auto difference = first_difference(read_json_file(path), options)) {
    throw UsageError("{}: begun with other options ({}); finish it with those, or delete it",
                     root.string(), *difference);
  }
}

}  // namespace

PackWorkspace::PackWorkspace(const fs::path& output, const Json& options)
    : output_(plain(output)),
      root_(workspace_of(output)),
      units_(root_ / "units"),
      set_(root_ / "set") {
  fs::create_directories(root_);
  lock_ = lock_workspace(root_);
  check_options(root_, options);
  for (const fs::path& directory : {units_, set_}) {
    fs::create_directories(directory);
    remove_files(directory, is_half_written);
  }
}

fs::path PackWorkspace::unit_path(uint32_t unit) const {
  return units_ / fmt::format("unit-{:06}.mmu", unit);
}

void PackWorkspace::publish(const std::set<std::string>& files) {
  remove_files(set_, [&](const std::string& name) { return !files.contains(name); });
  fsync_directory(set_);
  std::error_code error;
  fs::rename(set_, output_, error);
  if (error) throw IoError("{}: cannot rename into place: {}", output_.string(), error.message());
  fsync_directory(output_.parent_path());
  fs::remove_all(root_);
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
  fs::remove_all(workspace_of(output));
  return true;
}

}  // namespace mm::data
