#include "lib/run/verify_encoded.h"

#include "lib/base/error.h"
#include "lib/base/thread_pool.h"
#include "lib/run/encoded_unit.h"

namespace mm::run {
namespace {

/// Line about what is wrong with a unit, or an empty one.
std::string check_unit(const std::filesystem::path& directory, const data::FileEntry& file,
                       const EncodedUnit::Expected& expected) {
  if (std::string line = data::check_file(directory, file); !line.empty()) return line;
  try {
    EncodedUnit::open(directory / file.file, expected);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

data::VerifyReport verify_encoded(const std::filesystem::path& directory, int threads) {
  const EncodedManifest manifest = read_encoded_manifest(directory);
  const std::string hash = settings_hash(manifest.settings);
  std::vector<std::string> lines(manifest.units.size());
  parallel_for(lines.size(), threads, [&](size_t i) {
    const data::FileEntry& file = manifest.units[i];
    lines[i] =
        check_unit(directory, file,
                   {.settings = manifest.settings, .hash = hash, .number = i, .bytes = file.bytes});
  });
  data::VerifyReport report{.files = lines.size(), .samples = manifest.settings.rows};
  for (size_t i = 0; i < lines.size(); ++i) {
    report.bytes += manifest.units[i].bytes;
    if (lines[i].empty()) continue;
    if (++report.problems <= data::kNamedProblems) report.named.push_back(lines[i]);
  }
  return report;
}

}  // namespace mm::run
