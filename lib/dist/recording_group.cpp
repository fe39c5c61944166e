#include "lib/dist/recording_group.h"

namespace mm::dist {

void RecordingGroup::all_reduce_sum(at::Tensor tensor) {
  note("all_reduce_sum", tensor);
  if (inner_) inner_->all_reduce_sum(tensor);
}

void RecordingGroup::all_reduce_max(at::Tensor tensor) {
  note("all_reduce_max", tensor);
  if (inner_) inner_->all_reduce_max(tensor);
}

void RecordingGroup::reduce_scatter_sum(at::Tensor out, const at::Tensor& in) {
  note("reduce_scatter_sum", in);
  if (inner_) return inner_->reduce_scatter_sum(out, in);
  out.view({-1}).copy_(in.reshape({-1}).narrow(0, rank_ * out.numel(), out.numel()));
}

void RecordingGroup::all_gather(at::Tensor out, const at::Tensor& in) {
  note("all_gather", in);
  if (inner_) return inner_->all_gather(out, in);
  for (int r = 0; r < size_; ++r) {
    out.view({-1}).narrow(0, r * in.numel(), in.numel()).copy_(in.reshape({-1}));
  }
}

void RecordingGroup::broadcast(at::Tensor tensor, int root) {
  note("broadcast", tensor, root);
  if (inner_) inner_->broadcast(tensor, root);
}

std::vector<std::string> RecordingGroup::all_gather_bytes(const std::string& bytes) {
  calls_.push_back({"all_gather_bytes", static_cast<int64_t>(bytes.size()), at::kByte, -1});
  if (inner_) return inner_->all_gather_bytes(bytes);
  return std::vector<std::string>(static_cast<size_t>(size_), bytes);
}

void RecordingGroup::barrier() {
  calls_.push_back({"barrier", 0, at::kByte, -1});
  if (inner_) inner_->barrier();
}

void RecordingGroup::abort(const std::string& reason) {
  if (inner_) inner_->abort(reason);
}

}  // namespace mm::dist
