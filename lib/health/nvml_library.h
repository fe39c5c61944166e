#pragma once
#include <dlfcn.h>

#include <string>

namespace mm::health {

/// NVIDIA's management library, loaded for as long as the object lives. NVML's C interface is
/// stable under its names, so what we call is declared here: its header may be absent.
class NvmlLibrary {
 public:
  explicit NvmlLibrary(const std::string& name)
      : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~NvmlLibrary() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  NvmlLibrary(const NvmlLibrary&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }
  /// Null if the library or the symbol is not there.
  template <typename Function>
  Function* find(const char* symbol) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, symbol));
  }

 private:
  void* handle_;
};

inline constexpr int kNvmlSuccess = 0;
using NvmlDevice = void*;

}  // namespace mm::health
