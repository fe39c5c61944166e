#include "lib/data/parquet_module.h"

#include <dlfcn.h>

#include <string_view>
#include <vector>

#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/data/source_openers.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "libmm_parquet.so";

/// MM_PARQUET_MODULE, else beside the program as built or installed.
std::vector<fs::path> candidates() {
  if (const auto named = env::get("MM_PARQUET_MODULE")) return {*named};
  std::error_code error;
  const fs::path bin = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {bin / kModule, bin / "../lib" / kModule};
}

/// Stays loaded: sources hold code of it.
void* load() {
  for (const fs::path& path : candidates()) {
    if (!fs::exists(path)) continue;
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) throw UsageError("{}: cannot load: {}", path.string(), dlerror());
    const auto* version = static_cast<const char* const*>(dlsym(module, kParquetVersion));
    if (version == nullptr || std::string_view(*version) != kParquetVersionText)
      throw UsageError("{}: of another mmkit; build it again", path.string());
    return module;
  }
  throw UsageError(
      "Parquet needs {}, which is not there: run scripts/fetch-arrow.sh and build again, or turn "
      "the files into JSONL",
      kModule);
}

}  // namespace

std::unique_ptr<RecordSource> open_parquet(const SourceOptions& options) {
  void* module = load();
  const auto open = reinterpret_cast<OpenParquet>(dlsym(module, kParquetEntry));
  if (open == nullptr) throw UsageError("{}: of another mmkit; build it again", kModule);
  return std::unique_ptr<RecordSource>(open(options));
}

}  // namespace mm::data
