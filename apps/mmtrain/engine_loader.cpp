#include "apps/mmtrain/engine_loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/base/thread_pool.h"

namespace mm::mmtrain {
namespace {

namespace fs = std::filesystem;

void load(const fs::path& library, int mode) {
  if (!dlopen(library.c_str(), mode))
    throw UsageError("cannot load {}: {}", library.string(), dlerror());
}

/// The libraries of another LibTorch, in order of need; what has the same SONAME then serves the
/// engine.
void load_libtorch(const fs::path& root) {
  const fs::path cuda = root / ".." / "nvidia" / "cu13" / "lib";
  for (const char* name : {"libcudart.so.13", "libcupti.so.13"}) {
    if (fs::exists(cuda / name)) load(cuda / name, RTLD_NOW | RTLD_GLOBAL);
  }
  for (const char* name : {"libc10.so", "libtorch_cpu.so"})
    load(root / "lib" / name, RTLD_NOW | RTLD_GLOBAL);
}

void set_default_threads() {
  // Waiting threads sleep instead of spinning: ranks that share cores would spin one another's time
  // away.
  setenv("OMP_WAIT_POLICY", "PASSIVE", /*overwrite=*/0);
  if (env::get("OMP_NUM_THREADS")) return;
  const std::string threads =
      env::get("SLURM_CPUS_PER_TASK")
          .value_or(env::get("WORLD_SIZE") ? "1" : std::to_string(usable_cores()));
  setenv("OMP_NUM_THREADS", threads.c_str(), 1);
}

}  // namespace

int call_engine(const std::string& verb, const Json& options) {
  set_default_threads();
  if (const auto libtorch = env::get("LIBTORCH"); libtorch && !libtorch->empty())
    load_libtorch(*libtorch);
  const fs::path engine =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" / "libmm_engine.so";
  void* library = dlopen(engine.c_str(), RTLD_NOW);
  if (!library)
    throw UsageError("cannot load the engine: {}; set LIBTORCH=/path to a LibTorch 2.11 folder",
                     dlerror());
  using EngineRun = int (*)(const char*, const char*);
  const auto run = reinterpret_cast<EngineRun>(dlsym(library, "mm_engine_run"));
  if (!run) throw InternalError("{}: {}", engine.string(), dlerror());
  return run(verb.c_str(), options.dump().c_str());
}

}  // namespace mm::mmtrain
