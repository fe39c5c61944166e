#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/file.h"

namespace mm::data {

/// For crash tests: called at every point where a kill leaves another state behind.
using CacheFault = std::function<void(std::string_view point)>;

/// Step at which a file is needed next; kNoUse: not that anybody knows.
using NextUse = uint64_t;
inline constexpr NextUse kNoUse = UINT64_MAX;

/// Copies of files in a directory of this node with one budget for all processes that use it: what
/// is there and what is being fetched never takes more bytes. When room is wanted, what any living
/// process needs last goes first, and nothing goes for a file that is needed later than it. It
/// deletes only files that it made; a directory that is not empty and not a cache is refused.
/// Processes agree under a file lock that the kernel drops when one is killed, so a kill at any
/// moment leaves whole files, and parts that the next process removes. The directory must be on a
/// local file system. Thread-safe.
///
///     DIR/mmkit-cache.json   what makes it a cache     DIR/lock
///     DIR/files/NAME         whole copies              DIR/parts/PROCESS.NAME  being fetched
///     DIR/procs/PROCESS.lock held while it lives       DIR/procs/PROCESS.needs next use of NAMEs
class CacheDirectory {
 public:
  /// Throws UsageError (not a cache, a budget of 0), IoError.
  CacheDirectory(std::filesystem::path directory, uint64_t budget_bytes, CacheFault fault = {});
  ~CacheDirectory();
  CacheDirectory(const CacheDirectory&) = delete;

  /// Where a whole copy is, if there is one now; it may be deleted at any time (an open file stays
  /// readable).
  std::optional<std::filesystem::path> find(const std::string& name) const;
  /// Replaces what this process says of its needs.
  void set_needs(const std::map<std::string, NextUse>& needs);
  /// A file of `bytes` to write the copy into, when there is room or room can be made. Nothing:
  /// everything that is there is needed sooner, or another process is fetching it, or it is there.
  std::optional<std::filesystem::path> reserve(const std::string& name, uint64_t bytes,
                                               NextUse next_use);
  /// The part becomes the copy.
  void commit(const std::filesystem::path& part, const std::string& name);
  void abandon(const std::filesystem::path& part);
  /// Removes a copy whose bytes are wrong.
  void drop(const std::string& name);
  uint64_t budget_bytes() const { return budget_bytes_; }
  /// Bytes of copies and parts now.
  uint64_t used_bytes() const;

 private:
  class Locked;
  void fault(std::string_view point) const;
  bool has_marker() const;
  void make_directory() const;
  bool make_room(uint64_t bytes, NextUse next_use);
  std::map<std::string, NextUse> all_needs();
  void remove_dead();
  bool is_dead(const std::string& process) const;

  const std::filesystem::path root_;
  const uint64_t budget_bytes_;
  const CacheFault fault_;
  std::string process_;
  std::optional<File> alive_;
};

}  // namespace mm::data
