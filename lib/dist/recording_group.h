#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/dist/group.h"

namespace mm::dist {

/// One collective as it was called.
struct RecordedCall {
  std::string op;        ///< name of the Group method
  int64_t elements = 0;  ///< of the tensor that this rank sends; bytes for all_gather_bytes
  at::ScalarType dtype = at::kByte;
  int root = -1;  ///< broadcast only
  bool operator==(const RecordedCall&) const = default;
};

/// Notes every call. Forwards to `inner` if there is one; else stands alone for rank `rank` of
/// `size`, as if each peer had brought what this rank brought to gathers and zeros to sums. For
/// checks of programs and of bytes sent.
class RecordingGroup final : public Group {
 public:
  RecordingGroup(std::string name, int rank, int size)
      : name_(std::move(name)), rank_(rank), size_(size) {}
  explicit RecordingGroup(std::unique_ptr<Group> inner)
      : name_(inner->name()),
        rank_(inner->rank()),
        size_(inner->size()),
        inner_(std::move(inner)) {}

  const std::vector<RecordedCall>& calls() const { return calls_; }
  void clear() { calls_.clear(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& name() const override { return name_; }
  void all_reduce_sum(at::Tensor tensor) override;
  void all_reduce_max(at::Tensor tensor) override;
  void reduce_scatter_sum(at::Tensor out, const at::Tensor& in) override;
  void all_gather(at::Tensor out, const at::Tensor& in) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<std::string> all_gather_bytes(const std::string& bytes) override;
  void barrier() override;
  void abort(const std::string& reason) override;

 private:
  void note(const char* op, const at::Tensor& tensor, int root = -1) {
    calls_.push_back({op, tensor.numel(), tensor.scalar_type(), root});
  }

  std::string name_;
  int rank_, size_;
  std::unique_ptr<Group> inner_;
  std::vector<RecordedCall> calls_;
};

}  // namespace mm::dist
