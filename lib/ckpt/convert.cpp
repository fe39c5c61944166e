#include "lib/ckpt/convert.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/commit.h"
#include "lib/ckpt/float_cast.h"
#include "lib/ckpt/weight_source.h"

namespace fs = std::filesystem;

namespace mm::ckpt {
namespace {

/// A directory that is built aside and appears under its name at the end, or not at all.
class DirectoryAside {
 public:
  explicit DirectoryAside(fs::path final_path)
      : final_(std::move(final_path)),
        aside_(final_.string() + fmt::format(".tmp-{}", ::getpid())) {
    if (fs::exists(final_) || fs::is_symlink(final_))
      throw UsageError("{}: exists already; choose another name or remove it", final_.string());
    fs::remove_all(aside_);
    std::error_code error;
    if (!fs::create_directories(aside_, error))
      throw IoError("{}: cannot be made: {}", aside_.string(), error.message());
  }
  DirectoryAside(const DirectoryAside&) = delete;
  ~DirectoryAside() {
    std::error_code ignored;
    fs::remove_all(aside_, ignored);
  }
  const fs::path& path() const { return aside_; }
  void commit() {
    fsync_directory(aside_);
    std::error_code error;
    fs::rename(aside_, final_, error);
    if (error) throw IoError("{}: cannot be renamed: {}", aside_.string(), error.message());
    fsync_directory(fs::absolute(final_).parent_path());
  }

 private:
  fs::path final_, aside_;
};

/// `tensor` with its elements as `to`: each part that comes is cast and handed on.
TensorSource as_dtype(TensorSource tensor, DType to) {
  const DType from = tensor.dtype;
  if (!is_float_dtype(from) || from == to) return tensor;
  return {
      .name = tensor.name,
      .dtype = to,
      .shape = tensor.shape,
      .stream = [name = tensor.name, stream = tensor.stream, from, to](const ByteSink& sink) {
        stream([&](std::span<const std::byte> part) { sink(cast_floats(part, from, to, name)); });
      }};
}

std::string torch_name(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "float16";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF64:
      return "float64";
    default:
      return "float32";
  }
}

/// transformers 5 says "dtype", older files "torch_dtype".
void state_dtype(Json& config, DType dtype) {
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = torch_name(dtype);
}

uint64_t bytes_of(const TensorSource& tensor) {
  return packed_bytes(tensor.dtype, tensor.shape).value();
}

/// Tensors in files of at most `most` bytes, in the order of their names; a larger tensor has a
/// file of its own.
std::vector<std::span<const TensorSource>> split(std::span<const TensorSource> tensors,
                                                 uint64_t most) {
  std::vector<std::span<const TensorSource>> files;
  size_t begin = 0;
  uint64_t sum = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t bytes = bytes_of(tensors[i]);
    if (i > begin && bytes > most - std::min(sum, most)) {
      files.push_back(tensors.subspan(begin, i - begin));
      begin = i;
      sum = 0;
    }
    sum += bytes;
  }
  files.push_back(tensors.subspan(begin));
  return files;
}

size_t write_hugging_face(const WeightSource& source, const fs::path& out, uint64_t most) {
  const auto files = split(source.tensors, most);
  Json map = Json::object();
  uint64_t total = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string name =
        files.size() == 1 ? "model.safetensors"
                          : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size());
    write_safetensors(out / name, files[i]);
    for (const TensorSource& tensor : files[i]) {
      map[tensor.name] = name;
      total += bytes_of(tensor);
    }
  }
  if (files.size() > 1) {
    const Json index{{"metadata", {{"total_size", total}}}, {"weight_map", map}};
    write_file_atomic(out / "model.safetensors.index.json", index.dump(2) + "\n");
  }
  write_file_atomic(out / "config.json", source.config.dump(2) + "\n");
  return files.size();
}

size_t write_own(const WeightSource& source, const fs::path& out) {
  CheckpointWriter writer({.run_ckpt = out / "ckpt", .save_id = new_save_id()});
  writer.begin();
  std::vector<ShardTensor> tensors;
  for (const TensorSource& tensor : source.tensors) {
    tensors.push_back({.name = tensor.name,
                       .dtype = tensor.dtype,
                       .global_shape = tensor.shape,
                       .box = whole_box(tensor.shape),
                       .stream = tensor.stream});
  }
  const ShardReport report = writer.write_shard(tensors);
  writer.commit(std::span(&report, 1),
                {{"schema", 1}, {"program", "mmckpt"}, {"config", source.config}});
  return 1;
}

void copy_side_files(const WeightSource& source, const fs::path& into) {
  if (source.side_files.empty()) return;
  fs::create_directories(into);
  for (const fs::path& file : source.side_files)
    write_file_atomic(into / file.filename(), read_file(file));
}

}  // namespace

Conversion convert(const Target& in, const fs::path& out, const ConvertOptions& options) {
  // "out/" is "out".
  DirectoryAside directory(out.has_filename() ? out : out.parent_path());
  WeightSource source = open_weights(in);
  if (options.dtype) {
    for (TensorSource& tensor : source.tensors)
      tensor = as_dtype(std::move(tensor), *options.dtype);
    state_dtype(source.config, *options.dtype);
  }
  Conversion result{.tensors = source.tensors.size(), .notes = source.notes};
  for (const TensorSource& tensor : source.tensors) result.bytes += bytes_of(tensor);
  if (options.to == ConvertOptions::To::kHuggingFace) {
    result.files = write_hugging_face(source, directory.path(), options.max_shard_bytes);
    copy_side_files(source, directory.path());
  } else {
    result.files = write_own(source, directory.path());
    copy_side_files(source, directory.path() / "hf");
  }
  directory.commit();
  return result;
}

}  // namespace mm::ckpt
