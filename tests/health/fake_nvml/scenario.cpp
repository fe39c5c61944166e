#include "tests/health/fake_nvml/scenario.h"

#include <cstdlib>
#include <fstream>

namespace fake_nvml {
namespace {

std::string trim(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

Scenario Scenario::load() {
  Scenario scenario;
  const char* name = std::getenv("MM_FAKE_NVML");
  if (name == nullptr) return scenario;
  std::ifstream file(name);
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find('=');
    if (line.starts_with("#") || equals == std::string::npos) continue;
    scenario.values_[trim(line.substr(0, equals))] = trim(line.substr(equals + 1));
  }
  return scenario;
}

std::string Scenario::text(const std::string& key, const std::string& fallback) const {
  const auto it = values_.find(key);
  return it == values_.end() ? fallback : it->second;
}

uint64_t Scenario::number(const std::string& key, uint64_t fallback) const {
  const auto it = values_.find(key);
  return it == values_.end() ? fallback : std::strtoull(it->second.c_str(), nullptr, 0);
}

std::string Scenario::gpu_text(unsigned gpu, const std::string& name,
                               const std::string& fallback) const {
  return text("gpu." + std::to_string(gpu) + "." + name, text("gpu.*." + name, fallback));
}

uint64_t Scenario::gpu_number(unsigned gpu, const std::string& name, uint64_t fallback) const {
  return number("gpu." + std::to_string(gpu) + "." + name, number("gpu.*." + name, fallback));
}

}  // namespace fake_nvml
