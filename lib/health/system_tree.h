#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mm::health {

/// The kernel's files (/proc, /sys, /etc) below a root, so that a test can plant a tree of another
/// machine. Absent or unreadable files are nothing, not an error: callers say that they could not
/// check.
class SystemTree {
 public:
  explicit SystemTree(std::filesystem::path root = "/") : root_(std::move(root)) {}
  /// True if it is this machine and system calls describe the same node.
  bool live() const { return root_ == "/"; }
  /// At most 1 MiB, without blanks and line feeds at the end.
  std::optional<std::string> text(std::string_view path) const;
  std::optional<int64_t> number(std::string_view path) const;
  /// Where the path leads through symbolic links, without the root: /sys/bus/pci/devices/X is
  /// /sys/devices/pci0000:00/.../X. The path itself if it leads nowhere.
  std::filesystem::path resolved(std::string_view path) const;
  /// The file or directory as this process opens it.
  std::filesystem::path at(std::string_view path) const;
  /// Names in a directory, sorted.
  std::vector<std::string> names(std::string_view directory) const;

 private:
  std::filesystem::path root_;
};

/// Value behind "key:" in a file of such lines (/proc/meminfo, /proc/cpuinfo), the first if there
/// are more.
std::optional<std::string> field_of(std::string_view text, std::string_view key);

}  // namespace mm::health
