#include "lib/health/kernel_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace mm::health {
namespace {

constexpr double kLongestUptime = 1e10;  // seconds; what is more is no time

// One class of lines: all of `words` occur in it, in this order.
struct LineClass {
  std::vector<const char*> words;
  Level level;
  const char* code;
  const char* what;
  const char* action;
};

constexpr const char* kServer = "check the server and the network to it";
constexpr const char* kDisk = "exclude the node; replace the disk if it comes again";
constexpr const char* kPort = "watch its counters; exclude the node at the third flap";

const LineClass kLineClasses[] = {
    {{"GPU has fallen off the bus"},
     Level::kBad,
     "F17",
     "GPU has fallen off the bus",
     "exclude the node; drain it for a restart of the machine"},
    {{"nvidia-nvswitch", "SXid", "Fatal"},
     Level::kBad,
     "F12",
     "NVSwitch fault",
     "exclude the node; drain it for a GPU and switch reset"},
    {{"nvidia-nvswitch", "SXid"},
     Level::kWarn,
     "F12",
     "NVSwitch reported an error",
     "count by link; exclude the node if it comes again"},
    {{"nfs: server", "not responding"}, Level::kWarn, "F19", "NFS server did not answer", kServer},
    {{"Remounting filesystem read-only"},
     Level::kBad,
     "F48",
     "file system went read-only",
     "exclude the node; check the disk"},
    {{"Disabling device after reset failure"}, Level::kBad, "F54", "disk was given up", kDisk},
    {{"nvme", "timeout"}, Level::kWarn, "F54", "disk did not answer in time", kDisk},
    {{"Buffer I/O error"}, Level::kBad, "F54", "disk I/O error", kDisk},
    {{"EXT4-fs error"}, Level::kBad, "F54", "file system error", kDisk},
    {{"XFS", "Corruption"}, Level::kBad, "F54", "file system error", kDisk},
    {{"LustreError"}, Level::kWarn, "F18", "Lustre reported an error", kServer},
    {{"oom-kill:"},
     Level::kWarn,
     "F36",
     "a process was killed for lack of memory",
     "give the job more memory, or lower its loader's memory"},
    {{"soft lockup"},
     Level::kBad,
     "F58",
     "a processor was stuck",
     "exclude the node; drain it for a restart"},
    {{"blocked for more than"},
     Level::kWarn,
     "F58",
     "a process hung in the kernel",
     "see which mount or device it waits for"},
    {{"mce:", "[Hardware Error]"},
     Level::kWarn,
     "F50",
     "hardware error of CPU or memory",
     "read the memory error counters; drain the node if they rise"},
    {{"mlx5", "nsufficient power on the PCIe slot"},
     Level::kBad,
     "F11",
     "network card has too little power",
     "exclude the node; check the slot"},
    {{"mlx5", "High Temperature"},
     Level::kWarn,
     "F16",
     "network module is hot",
     "check the cooling of the port"},
    {{"mlx5", "ACCESS_REG", "failed"},
     Level::kWarn,
     "F49",
     "network card refused a register",
     "update its firmware if it comes again"},
    {{"ib_", "link down"}, Level::kWarn, "F10", "port lost its link", kPort},
    {{"mlx5", "Link down"}, Level::kWarn, "F10", "port lost its link", kPort},
    {{"lost carrier"}, Level::kWarn, "F10", "port lost its link", kPort}};

bool holds(const std::string& text, const LineClass& kind) {
  size_t at = 0;
  for (const char* word : kind.words) {
    at = text.find(word, at);
    if (at == std::string::npos) return false;
  }
  return true;
}

// "mlx5_core 0000:1a:00.0", "nvme nvme3", the text before the words that made the class.
std::string place_of(const std::string& text, const LineClass& kind) {
  const size_t end =
      kind.words.size() > 1 ? std::min(text.find(": "), text.size()) : std::string::npos;
  if (end != std::string::npos && end > 0 && end < 48) return text.substr(0, end);
  return "kernel log";
}

struct Group {
  Finding finding;
  int count = 0;
  bool recent = false;
};

// A double-bit error that was contained (Xid 94, no 95) left the node usable.
void soften_contained(std::map<std::tuple<std::string, std::string, std::string>, Group>& groups) {
  const auto seen = [&](const std::string& where, const char* xid) {
    return std::any_of(groups.begin(), groups.end(), [&](const auto& entry) {
      return entry.second.finding.where == where && entry.second.finding.what.starts_with(xid);
    });
  };
  for (auto& [key, group] : groups) {
    Finding& finding = group.finding;
    if (finding.what.starts_with("Xid 48:") && seen(finding.where, "Xid 94:") &&
        !seen(finding.where, "Xid 95:"))
      finding.level = Level::kWarn;
  }
}

Finding summed(const Group& group, const KernelEventOptions& options) {
  Finding finding = group.finding;
  if (group.count > 1) finding.what += fmt::format(", {} times", group.count);
  // Three flaps within the window make a port suspect.
  if (finding.code == "F10" && group.count >= 3) finding.level = Level::kBad;
  if (!group.recent && finding.level == Level::kBad) {
    finding.level = Level::kWarn;
    finding.what += fmt::format(", longer ago than {} h", options.window_h);
  }
  return finding;
}

}  // namespace

std::optional<Finding> judge_kernel_line(const std::string& text, const XidTable& table) {
  if (const auto xid = parse_xid(text)) return judge_xid(*xid, table);
  for (const LineClass& kind : kLineClasses) {
    if (!holds(text, kind)) continue;
    return Finding{.level = kind.level,
                   .code = kind.code,
                   .where = place_of(text, kind),
                   .what = kind.what,
                   .evidence = text,
                   .action = kind.action};
  }
  return std::nullopt;
}

std::vector<Finding> judge_kernel_log(const KernelLog& log, const XidTable& table,
                                      const KernelEventOptions& options) {
  std::map<std::tuple<std::string, std::string, std::string>, Group> groups;
  std::vector<std::tuple<std::string, std::string, std::string>> order;
  for (const KernelLine& line : log.lines) {
    auto finding = judge_kernel_line(line.text, table);
    if (!finding) continue;
    const auto key = std::make_tuple(finding->code, finding->where, finding->what);
    Group& group = groups[key];
    if (group.count++ == 0) {
      order.push_back(key);
      if (options.boot_unix_ms && line.uptime_s && *line.uptime_s < kLongestUptime)
        finding->since_unix_ms =
            *options.boot_unix_ms + static_cast<int64_t>(*line.uptime_s * 1000);
      group.finding = std::move(*finding);
    } else {
      // A fatal line among harmless ones of the same number decides.
      if (finding->level == Level::kBad) group.finding.level = Level::kBad;
    }
    group.recent |= !options.uptime_s || !line.uptime_s ||
                    *line.uptime_s > *options.uptime_s - options.window_h * 3600;
  }
  soften_contained(groups);
  std::vector<Finding> findings;
  for (const auto& key : order) findings.push_back(summed(groups.at(key), options));
  return findings;
}

}  // namespace mm::health
