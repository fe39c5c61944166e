#include <algorithm>
#include <charconv>

#include "lib/health/host_report.h"

namespace mm::health {
namespace {

// "16384 kB" of /proc/meminfo.
std::optional<uint64_t> kib_field(const std::string& meminfo, std::string_view key) {
  const auto text = field_of(meminfo, key);
  uint64_t kib = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), kib).ec != std::errc())
    return std::nullopt;
  return kib * 1024;
}

// The limit of one group; "max" and huge numbers mean none.
void take_limit(const SystemTree& tree, const std::string& path, MemoryReport& memory) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  if (!tree.text(path)) return;
  memory.cgroup_known = true;
  const auto limit = tree.number(path);
  if (!limit || *limit <= 0 || *limit >= kNoLimit) return;
  const uint64_t bytes = static_cast<uint64_t>(*limit);
  memory.cgroup_limit_bytes = std::min(memory.cgroup_limit_bytes.value_or(bytes), bytes);
}

// Our group and all above it, each of which may limit: "0::/a/b" in version 2, "5:memory:/a/b" in
// version 1.
void read_cgroup_limit(const SystemTree& tree, MemoryReport& memory) {
  const bool version_2 = tree.text("/sys/fs/cgroup/cgroup.controllers").has_value();
  const std::string base = version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
  const std::string file = version_2 ? "/memory.max" : "/memory.limit_in_bytes";
  const std::string groups = "\n" + tree.text("/proc/self/cgroup").value_or("");
  const std::string_view key = version_2 ? "0::" : ":memory:";
  const size_t at = groups.find(key);
  std::string group = at == std::string::npos ? "" : groups.substr(at + key.size());
  group.resize(std::min(group.find('\n'), group.size()));
  // The topmost group of version 2 has no limit and no file that says so.
  memory.cgroup_known = version_2;
  while (!group.empty() && group != "/") {
    take_limit(tree, base + group + file, memory);
    group.resize(std::min(group.rfind('/'), group.size() - 1));
  }
  take_limit(tree, base + file, memory);
}

}  // namespace

MemoryReport read_memory(const std::filesystem::path& root) {
  const SystemTree tree(root);
  MemoryReport memory;
  const std::string meminfo = tree.text("/proc/meminfo").value_or("");
  memory.total_bytes = kib_field(meminfo, "MemTotal");
  memory.available_bytes = kib_field(meminfo, "MemAvailable");
  read_cgroup_limit(tree, memory);
  return memory;
}

}  // namespace mm::health
