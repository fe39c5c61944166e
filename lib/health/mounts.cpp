#include "lib/health/mounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>

namespace mm::health {
namespace {

constexpr size_t kMaxMounts = 64;
constexpr const char* kServer = "exclude the node; check the server and the network to it";

bool one_of(const std::string& type, std::initializer_list<const char*> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool is_network(const std::string& type) {
  return one_of(type, {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "9p", "virtiofs",
                       "glusterfs", "wekafs", "panfs", "afs", "orangefs"}) ||
         (type.starts_with("fuse") && !one_of(type, {"fusectl", "fuse.lxcfs", "fuse.portal"}));
}

bool is_disk(const std::string& type) {
  return one_of(type, {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs"});
}

// The table writes blanks as \040 and so on.
std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '3') {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<Mount> parse_table(const std::string& table) {
  std::vector<Mount> mounts;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line) && mounts.size() < kMaxMounts;) {
    std::istringstream fields(line);
    Mount mount;
    if (!(fields >> mount.device >> mount.point >> mount.type >> mount.options)) continue;
    mount.network = is_network(mount.type);
    if (!mount.network && !is_disk(mount.type)) continue;
    mount.point = unescape(mount.point);
    // The same disk again at another place answers the same.
    const bool known = std::any_of(mounts.begin(), mounts.end(), [&](const Mount& m) {
      return !mount.network && m.device == mount.device;
    });
    if (!known) mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::string gib(uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

// Hung, stale or gone: what a path that does not answer means.
Finding no_answer(const std::string& where, const DiskSpace& space) {
  Finding finding{.level = Level::kBad,
                  .code = space.hung ? "F19" : "F18",
                  .where = where,
                  .what = space.hung              ? "does not answer"
                          : space.error == ESTALE ? "stale"
                                                  : "not readable",
                  .evidence = space.problem,
                  .action = kServer};
  if (space.error == ENOENT) finding.action = "mount it, or correct the path";
  return finding;
}

}  // namespace

bool Mount::has_option(std::string_view option) const {
  return ("," + options + ",").find(fmt::format(",{},", option)) != std::string::npos;
}

std::vector<Mount> read_mounts(const SystemTree& tree, int deadline_ms) {
  std::vector<Mount> mounts = parse_table(tree.text("/proc/self/mounts").value_or(""));
  std::vector<std::filesystem::path> points;
  for (const Mount& mount : mounts) points.push_back(tree.at(mount.point));
  const std::vector<DiskSpace> spaces = probe_disks(points, deadline_ms);
  for (size_t i = 0; i < mounts.size(); ++i) {
    mounts[i].space = spaces[i];
    mounts[i].space.path = mounts[i].point;
  }
  return mounts;
}

std::vector<Finding> judge_mounts(const std::vector<Mount>& mounts, const Expectation& expected) {
  std::vector<Finding> findings;
  for (const Mount& mount : mounts) {
    const std::string where = fmt::format("mount {} ({})", mount.point, mount.type);
    // A place that only root may look into is no fault of the mount.
    if (mount.space.error == EACCES || mount.space.error == EPERM) continue;
    if (!mount.space.problem.empty()) {
      findings.push_back(no_answer(where, mount.space));
    } else if (mount.has_option("ro") &&
               (mount.has_option("errors=remount-ro") || mount.has_option("emergency_ro"))) {
      findings.push_back({.level = Level::kBad,
                          .code = "F48",
                          .where = where,
                          .what = "went read-only after an error",
                          .evidence = mount.options,
                          .action = "exclude the node; check the disk"});
    }
  }
  for (const std::string& wanted : expected.storage.mounts) {
    if (std::any_of(mounts.begin(), mounts.end(),
                    [&](const Mount& m) { return m.point == wanted; }))
      continue;
    findings.push_back({.level = Level::kBad,
                        .code = "F18",
                        .where = "mount " + wanted,
                        .what = "not mounted",
                        .evidence = "expected by the kind of node",
                        .action = "exclude the node; mount it"});
  }
  if (findings.empty() && mounts.empty())
    return {not_checked("mounts", "no disk or network mount")};
  if (findings.empty()) findings.push_back(ok("mounts", fmt::format("{} answer", mounts.size())));
  return findings;
}

std::vector<Finding> judge_paths(const std::vector<DiskSpace>& spaces,
                                 const Expectation& expected) {
  std::vector<Finding> findings;
  for (const DiskSpace& space : spaces) {
    const std::string where = "path " + space.path.string();
    const auto room = fmt::format("{} of {} free, {} inodes free", gib(space.free_bytes),
                                  gib(space.total_bytes), space.free_inodes);
    const auto bad = [&](const char* code, const char* what, const char* action) {
      findings.push_back({.level = Level::kBad,
                          .code = code,
                          .where = where,
                          .what = what,
                          .evidence = room,
                          .action = action});
    };
    if (!space.problem.empty()) {
      findings.push_back(no_answer(where, space));
    } else if (space.read_only) {
      bad("F48", "read-only", "check the disk, or name a path that may be written");
    } else if (static_cast<double>(space.free_bytes) < expected.storage.free_gib_min * (1 << 30)) {
      bad("F20", "too little room", "delete, or name another path");
    } else if (space.total_inodes > 0 &&
               space.free_inodes < static_cast<uint64_t>(expected.storage.free_inodes_min)) {
      // Some file systems have no fixed inode table and say 0 of 0.
      bad("F21", "too few inodes", "delete small files, or name another path");
    } else {
      findings.push_back(ok(where, room));
    }
  }
  return findings;
}

}  // namespace mm::health
