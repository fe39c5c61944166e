#include "lib/state/load_state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/find.h"
#include "lib/ckpt/layout.h"
#include "lib/ckpt/safetensors.h"

namespace mm::state {
namespace {

std::optional<Checkpoint> newest(const std::filesystem::path& run_ckpt) {
  ckpt::FoundCheckpoint found = ckpt::find_newest(run_ckpt, {.threads = 0});
  for (const ckpt::PassedOver& other : found.passed_over) {
    log::warn("state", "checkpoint passed over",
              {{"directory", other.path.filename().string()}, {"reason", other.reason}});
  }
  if (!found.found()) return std::nullopt;
  return Checkpoint{std::move(found.path), std::move(found.manifest)};
}

/// Files of one checkpoint, opened once each.
class Shards {
 public:
  explicit Shards(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  const ckpt::SafetensorsFile& file(size_t index) {
    auto found = open_.find(index);
    if (found == open_.end()) {
      found = open_
                  .emplace(index,
                           ckpt::SafetensorsFile::open(checkpoint_.directory /
                                                       checkpoint_.manifest.files.at(index).name))
                  .first;
    }
    return found->second;
  }

 private:
  const Checkpoint& checkpoint_;
  std::map<size_t, ckpt::SafetensorsFile> open_;
};

at::ScalarType memory_dtype(ckpt::DType dtype, const std::string& name) {
  switch (dtype) {
    case ckpt::DType::kF32:
      return at::kFloat;
    case ckpt::DType::kF64:
      return at::kDouble;
    case ckpt::DType::kBF16:
      return at::kBFloat16;
    case ckpt::DType::kF16:
      return at::kHalf;
    case ckpt::DType::kI64:
      return at::kLong;
    default:
      throw DataError("{}: a training state has no tensors of type {}", name,
                      ckpt::dtype_name(dtype));
  }
}

void load_one(Shards& shards, const ckpt::TensorRecord& record, const at::Tensor& out) {
  for (const ckpt::Piece& piece : record.pieces) {
    const ckpt::SafetensorsFile& file = shards.file(piece.file);
    const std::vector<int64_t> shape(piece.box.shape.begin(), piece.box.shape.end());
    at::Tensor part = at::empty(shape, memory_dtype(record.dtype, record.name));
    file.read(file.at(piece.tensor), tensor_bytes(part));
    at::Tensor place = out;
    for (size_t d = 0; d < shape.size(); ++d)
      place = place.narrow(static_cast<int64_t>(d), static_cast<int64_t>(piece.box.offset[d]),
                           shape[d]);
    place.copy_(part);
  }
}

}  // namespace

std::optional<Checkpoint> find_checkpoint(dist::Group& group,
                                          const std::filesystem::path& run_ckpt) {
  std::string message;
  std::optional<Checkpoint> mine;
  if (group.rank() == 0) {
    try {
      mine = newest(run_ckpt);
      message = mine ? "+" + mine->directory.filename().string() : "0";
    } catch (const Error& error) {
      message = std::string("-") + error.what();
    }
  }
  const std::string answer = group.all_gather_bytes(message)[0];
  if (answer[0] == '-') throw DataError("{}", answer.substr(1));
  if (answer[0] == '0') return std::nullopt;
  if (group.rank() == 0) return mine;
  const std::filesystem::path directory = run_ckpt / answer.substr(1);
  return Checkpoint{directory, ckpt::read_committed_manifest(directory)};
}

Checkpoint open_checkpoint(const std::filesystem::path& path) {
  if (std::filesystem::exists(path / ckpt::kManifestName)) {
    const ckpt::VerifyReport report = ckpt::verify_checkpoint(path, {.threads = 0});
    if (!report.ok()) throw DataError("{}: {}", path.string(), report.problems.front());
    return {path, ckpt::read_committed_manifest(path)};
  }
  const std::filesystem::path run_ckpt =
      std::filesystem::exists(path / "ckpt") ? path / "ckpt" : path;
  std::optional<Checkpoint> found = newest(run_ckpt);
  if (!found)
    throw DataError(
        "{}: no checkpoint in it; expected a run directory, its ckpt/, or one checkpoint",
        path.string());
  return std::move(*found);
}

void load_tensors(const Checkpoint& checkpoint, const std::vector<StateTensor>& into) {
  const at::NoGradGuard no_grad;
  Shards shards(checkpoint);
  const std::vector<ckpt::TensorRecord>& records = checkpoint.manifest.tensors;
  for (const StateTensor& tensor : into) {
    const auto record = std::lower_bound(
        records.begin(), records.end(), tensor.name,
        [](const ckpt::TensorRecord& r, const std::string& n) { return r.name < n; });
    if (record == records.end() || record->name != tensor.name) {
      throw DataError("{}: no tensor {} in it", checkpoint.directory.string(), tensor.name);
    }
    const std::vector<int64_t> shape(record->shape.begin(), record->shape.end());
    if (tensor.value.sizes() != at::IntArrayRef(shape)) {
      throw DataError("{}: {} has shape [{}] in the checkpoint, [{}] in the model",
                      checkpoint.directory.string(), tensor.name, fmt::join(shape, ", "),
                      fmt::join(tensor.value.sizes(), ", "));
    }
    load_one(shards, *record, tensor.value);
  }
}

}  // namespace mm::state
