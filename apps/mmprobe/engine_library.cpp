#include "apps/mmprobe/engine_library.h"

#include <dlfcn.h>

#include "lib/base/env.h"
#include "lib/base/error.h"

namespace mm::mmprobe {

std::filesystem::path engine_path() {
  if (const auto named = env::get("MMPROBE_ENGINE")) return *named;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" /
         "libmm_probe_engine.so";
}

void* engine_symbol(const char* symbol) {
  void* library = ::dlopen(engine_path().c_str(), RTLD_NOW);
  if (library == nullptr) throw UsageError("needs LibTorch: {}", std::string(::dlerror()));
  void* found = ::dlsym(library, symbol);
  if (found == nullptr) throw UsageError("{} lacks {}", engine_path().string(), symbol);
  return found;
}

}  // namespace mm::mmprobe
