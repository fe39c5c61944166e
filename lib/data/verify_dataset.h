#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/exit_code.h"
#include "lib/base/json.h"
#include "lib/data/dataset_manifest.h"

namespace mm::data {

struct VerifyReport {
  uint64_t files = 0, bytes = 0, samples = 0;  ///< looked at
  uint64_t problems = 0;
  std::vector<std::string> named;  ///< the first kNamedProblems of them, a line each
  bool sound() const { return problems == 0; }
  ExitCode exit_code() const { return sound() ? ExitCode::kDone : ExitCode::kDataInvalid; }
};
inline constexpr size_t kNamedProblems = 100;

/// Reads every byte of a data set: each file's size and hash against the manifest, each record's
/// checksum, each sample decoded, pictures too. Goes on after a problem. `threads` 0: all cores.
/// Order of `named` does not depend on threads. Throws DataError when there is no manifest that can
/// be read, IoError.
VerifyReport verify_dataset(const std::filesystem::path& directory, int threads = 0);
/// With "schema": 1.
Json to_json(const VerifyReport& report);
/// A line for each problem named, and one that sums up.
std::string to_text(const VerifyReport& report, const std::filesystem::path& directory);

/// Line about what is wrong with a file of a set, its size or its hash; or an empty one.
std::string check_file(const std::filesystem::path& directory, const FileEntry& entry);

}  // namespace mm::data
