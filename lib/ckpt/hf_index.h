#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/safetensors.h"

namespace mm::ckpt {

/// A tensor of a Hugging Face directory: the file that holds it and its entry there. Both live as
/// long as the HfWeights.
struct HfTensor {
  const SafetensorsFile* file = nullptr;
  const TensorEntry* entry = nullptr;
  std::vector<std::byte> read() const { return file->read(*entry); }
};

/// What to do about weights in PyTorch's own files (.bin, .pt, .pth, .ckpt), where a directory has
/// some: the end of a message, beginning with "; ". Empty where it has none, or is none.
std::string pickled_weights_advice(const std::filesystem::path& directory);

/// The weights of a Hugging Face directory as one map from name to tensor: `model.safetensors`, or
/// the files that `model.safetensors.index.json` names, or the same with diffusers'
/// `diffusion_pytorch_model` or PEFT's `adapter_model`. Headers only are read. Names in the index
/// stay inside the directory; links are followed. Movable; const members may be called from any
/// thread.
class HfWeights {
 public:
  /// Throws IoError, or DataError naming file and tensor: no weights found; a file of the index
  /// missing or outside the directory; a tensor in the index but not in its file, in a file but not
  /// in the index, or in two files; shards of "-of-N" missing from the index. Merely odd things
  /// (wrong total_size, a stray shard, dtype other than config.json's) become notes.
  static HfWeights open(const std::filesystem::path& directory);
  /// True if the directory has one of the file names that `open` looks for.
  static bool looks_like(const std::filesystem::path& directory);

  const std::map<std::string, HfTensor, std::less<>>& tensors() const { return tensors_; }
  const std::vector<std::unique_ptr<SafetensorsFile>>& files() const { return files_; }
  const std::vector<std::string>& notes() const { return notes_; }
  /// Null if there is no such tensor.
  const HfTensor* find(std::string_view name) const;
  /// Throws DataError, naming directory and tensor.
  const HfTensor& at(std::string_view name) const;
  /// Sum over all tensors.
  uint64_t tensor_bytes() const;

 private:
  void open_single(const std::filesystem::path& path);
  void open_indexed(const std::filesystem::path& index);
  void add_file(const std::filesystem::path& path);
  void note_strays(const std::string& base);
  void note_dtype();

  std::filesystem::path directory_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, HfTensor, std::less<>> tensors_;
  std::vector<std::string> notes_;
};

}  // namespace mm::ckpt
