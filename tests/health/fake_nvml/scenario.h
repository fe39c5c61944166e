#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace fake_nvml {

/// The file's lines "key = value". Keys of a GPU are looked up as "gpu.3.NAME", then "gpu.*.NAME".
class Scenario {
 public:
  /// Reads the file that MM_FAKE_NVML names; two idle GPUs without one.
  static Scenario load();
  std::string text(const std::string& key, const std::string& fallback) const;
  uint64_t number(const std::string& key, uint64_t fallback) const;
  std::string gpu_text(unsigned gpu, const std::string& name, const std::string& fallback) const;
  uint64_t gpu_number(unsigned gpu, const std::string& name, uint64_t fallback) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace fake_nvml
