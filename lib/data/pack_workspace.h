#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "lib/base/file.h"
#include "lib/base/json.h"

namespace mm::data {

/// The directory beside the output, DATASET.partial, in which a data set grows: units/ of finished
/// records, set/ that becomes the data set by one rename. Killed at any moment, the next run with
/// the same options goes on from it.
class PackWorkspace {
 public:
  /// Makes or continues it and locks it against a second packer. Throws UsageError when another
  /// packer holds it, or when it was begun with other options (naming the first difference);
  /// IoError.
  PackWorkspace(const std::filesystem::path& output, const Json& options);

  std::filesystem::path unit_path(uint32_t unit) const;
  const std::filesystem::path& set() const { return set_; }
  /// Law 4: renames set/ to the output and removes the workspace. Files in set/ other than `files`
  /// (of an attempt with another source) are removed first.
  void publish(const std::set<std::string>& files);

 private:
  std::filesystem::path output_, root_, units_, set_;
  std::optional<File> lock_;
};

/// Looks at the output before any work. True: it is whole and was packed with these options (a
/// workspace left by a kill between rename and removal is removed). False: nothing is there. Throws
/// UsageError if it was packed with other options, naming the first difference, or is something
/// else than a data set.
bool already_packed(const std::filesystem::path& output, const Json& options);

}  // namespace mm::data
