#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/ckpt/safetensors.h"

namespace mm::oracle {

/// A folder of reference numbers: expected.json and, where there is one, io.safetensors. Remembers
/// what was looked at, so that nothing in it can go unchecked in silence. Paths into expected.json
/// join keys with '/' ("train/all_trained/losses"); names of tensors are as they are. Reading
/// throws DataError or IoError, naming the file and the key.
class Folder {
 public:
  explicit Folder(std::filesystem::path directory);

  const std::filesystem::path& directory() const { return directory_; }
  /// "what" of expected.json: which generator made the folder.
  std::string what() const;

  bool has(const std::string& path) const;
  /// The value at `path`; everything below it counts as looked at.
  const Json& take(const std::string& path);
  double number(const std::string& path);
  std::vector<double> numbers(const std::string& path);
  std::set<std::string> words(const std::string& path);
  /// Keys of the object at `path`; looks at nothing.
  std::vector<std::string> keys(const std::string& path) const;
  /// Elements of the array at `path`; looks at nothing.
  size_t count(const std::string& path) const;
  /// Paths that are settings of the case or facts about the reference, not results.
  void set_aside(std::initializer_list<const char*> paths);

  bool has_tensor(const std::string& name) const;
  at::Tensor tensor(const std::string& name);
  /// Names in io.safetensors that begin with `prefix`.
  std::vector<std::string> tensor_names(const std::string& prefix) const;

  /// Leaves of expected.json and tensors that nobody looked at. An array is one leaf unless it
  /// holds objects.
  std::vector<std::string> untouched() const;

 private:
  const Json* find(const std::string& path) const;

  std::filesystem::path directory_;
  Json expected_;
  std::optional<ckpt::SafetensorsFile> io_;
  std::set<std::string> touched_paths_, touched_tensors_;
};

}  // namespace mm::oracle
