#include "lib/dist/gloo_group.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include <exception>
#include <functional>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>

#include "lib/base/error.h"
#include "lib/dist/backend_errors.h"
#include "lib/dist/local_address.h"
#include "lib/dist/rank_order.h"
#include "lib/dist/rendezvous_store.h"
#include "lib/dist/single_group.h"
#include "lib/dist/work_wait.h"

namespace mm::dist {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;

at::Tensor flat(const at::Tensor& tensor) { return tensor.detach().view({-1}); }

class GlooGroup final : public Group {
 public:
  GlooGroup(const Rendezvous& rendezvous, const GlooOptions& options);
  // Gloo's destructor waits until what is in flight times out. A rank that aborted is about to end
  // and its peers wait for that, so the backend is left to the process's exit, which closes the
  // connections.
  ~GlooGroup() override {
    if (wait_.aborted()) static_cast<void>(backend_.release());
  }
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& name() const override { return name_; }

  void all_reduce_sum(at::Tensor tensor) override;
  void all_reduce_max(at::Tensor tensor) override {
    call("all_reduce_max", [&] { exchange_and_combine(tensor, Reduction::kMax); });
  }
  void reduce_scatter_sum(at::Tensor out, const at::Tensor& in) override;
  void all_gather(at::Tensor out, const at::Tensor& in) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<std::string> all_gather_bytes(const std::string& bytes) override;
  void barrier() override;
  void abort(const std::string& reason) override { wait_.abort(reason); }

 private:
  /// Counts the call, turns whatever the backend throws into CommError, and closes the group after
  /// an error.
  void call(const char* op, const std::function<void()>& body);
  void exchange_and_combine(const at::Tensor& tensor, Reduction reduction);
  /// Rank r's `sizes[r]` elements, in place in `whole`, reach everybody: W broadcasts in flight,
  /// much faster than Gloo's all-gather.
  void share_pieces(const at::Tensor& whole, const std::vector<int64_t>& sizes);
  Work all_to_all(at::Tensor out, at::Tensor in, std::vector<int64_t> out_sizes,
                  std::vector<int64_t> in_sizes) {
    return backend_->alltoall_base(out, in, out_sizes, in_sizes);
  }
  Work start_broadcast(const at::Tensor& tensor, int root);

  const int rank_, size_;
  const std::string name_;
  WorkWait wait_;
  uint64_t sequence_ = 0;
  std::string failure_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> backend_;
};

GlooGroup::GlooGroup(const Rendezvous& rendezvous, const GlooOptions& options)
    : rank_(rendezvous.rank()),
      size_(rendezvous.world()),
      name_(options.name),
      wait_(2 * options.timeout) {
  Rendezvous::Impl& impl = rendezvous.impl();
  const std::string address =
      options.interface.empty() ? impl.address : address_of_interface(options.interface);
  call("connect", [&] {
    const int use = impl.group_uses[options.name]++;
    auto store = c10::make_intrusive<c10d::PrefixStore>(
        fmt::format("group/{}#{}", options.name, use), impl.store->clone());
    store->setTimeout(options.timeout);
    auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
    gloo->devices = {c10d::ProcessGroupGloo::createDeviceForHostname(address)};
    backend_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank_, size_, gloo);
  });
}

void GlooGroup::call(const char* op, const std::function<void()>& body) {
  const std::string where =
      fmt::format("group \"{}\" (rank {} of {}): {} #{}", name_, rank_, size_, op, sequence_++);
  if (!failure_.empty()) throw CommError("{}: the group failed before: {}", where, failure_);
  const at::NoGradGuard no_grad;
  try {
    body();
  } catch (const std::exception& error) {
    failure_ = fmt::format("{}: {}", where, reason_of(error));
    throw CommError("{}", failure_);
  }
}

void GlooGroup::all_reduce_sum(at::Tensor tensor) {
  MM_CHECK(tensor.is_contiguous(), "all_reduce_sum takes contiguous tensors");
  call("all_reduce_sum", [&] {
    if (size_ > 2) return exchange_and_combine(tensor, Reduction::kSum);
    if (tensor.numel() == 0) return;
    std::vector<at::Tensor> tensors = {flat(tensor)};
    wait_.finish({backend_->allreduce(tensors)});
  });
}

void GlooGroup::exchange_and_combine(const at::Tensor& tensor, Reduction reduction) {
  if (tensor.numel() == 0) return;
  const std::vector<int64_t> sizes = piece_sizes(tensor.numel(), size_);
  const int64_t mine = sizes[static_cast<size_t>(rank_)];
  const std::vector<int64_t> received(static_cast<size_t>(size_), mine);
  const at::Tensor whole = flat(tensor);
  const at::Tensor parts = at::empty({mine * size_}, tensor.options());
  wait_.finish({all_to_all(parts, whole, received, sizes)});
  int64_t start = 0;
  for (int r = 0; r < rank_; ++r) start += sizes[static_cast<size_t>(r)];
  whole.narrow(0, start, mine)
      .copy_(combine_in_rank_order(parts.view({size_, mine}).unbind(0), reduction));
  share_pieces(whole, sizes);
}

Work GlooGroup::start_broadcast(const at::Tensor& tensor, int root) {
  std::vector<at::Tensor> tensors = {tensor};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  options.rootTensor = 0;
  return backend_->broadcast(tensors, options);
}

void GlooGroup::share_pieces(const at::Tensor& whole, const std::vector<int64_t>& sizes) {
  std::vector<Work> in_flight;
  int64_t start = 0;
  for (int r = 0; r < size_; ++r) {
    const int64_t length = sizes[static_cast<size_t>(r)];
    if (length > 0) in_flight.push_back(start_broadcast(whole.narrow(0, start, length), r));
    start += length;
  }
  wait_.finish(in_flight);
}

void GlooGroup::reduce_scatter_sum(at::Tensor out, const at::Tensor& in) {
  MM_CHECK(in.numel() == out.numel() * size_,
           "reduce_scatter_sum: in has {} elements, out {} x {} ranks", in.numel(), out.numel(),
           size_);
  call("reduce_scatter_sum", [&] {
    if (out.numel() == 0) return;
    const at::Tensor parts = at::empty({in.numel()}, in.options());
    wait_.finish({all_to_all(parts, in.detach().reshape({-1}), {}, {})});
    flat(out).copy_(
        combine_in_rank_order(parts.view({size_, out.numel()}).unbind(0), Reduction::kSum));
  });
}

void GlooGroup::all_gather(at::Tensor out, const at::Tensor& in) {
  MM_CHECK(out.numel() == in.numel() * size_, "all_gather: out has {} elements, in {} x {} ranks",
           out.numel(), in.numel(), size_);
  call("all_gather", [&] {
    flat(out).narrow(0, rank_ * in.numel(), in.numel()).copy_(in.detach().reshape({-1}));
    share_pieces(flat(out), std::vector<int64_t>(static_cast<size_t>(size_), in.numel()));
  });
}

void GlooGroup::broadcast(at::Tensor tensor, int root) {
  MM_CHECK(root >= 0 && root < size_, "broadcast from rank {} in a group of {}", root, size_);
  call("broadcast", [&] {
    if (tensor.numel() > 0) wait_.finish({start_broadcast(flat(tensor), root)});
  });
}

std::vector<std::string> GlooGroup::all_gather_bytes(const std::string& bytes) {
  std::vector<std::string> all;
  call("all_gather_bytes", [&] {
    const at::Tensor counts = at::empty({size_}, at::kLong);
    counts.data_ptr<int64_t>()[rank_] = static_cast<int64_t>(bytes.size());
    share_pieces(counts, std::vector<int64_t>(static_cast<size_t>(size_), 1));
    const std::vector<int64_t> sizes(counts.data_ptr<int64_t>(),
                                     counts.data_ptr<int64_t>() + size_);
    int64_t total = 0;
    for (const int64_t length : sizes) total += length;
    const at::Tensor joined = at::empty({total}, at::kByte);
    char* const text = reinterpret_cast<char*>(joined.data_ptr<uint8_t>());
    int64_t start = 0;
    for (int r = 0; r < rank_; ++r) start += sizes[static_cast<size_t>(r)];
    bytes.copy(text + start, bytes.size());
    share_pieces(joined, sizes);
    start = 0;
    for (const int64_t length : sizes) {
      all.emplace_back(text + start, static_cast<size_t>(length));
      start += length;
    }
  });
  return all;
}

// Gloo's monitored barrier is slower than the plain one, but its error on rank 0 names the ranks
// that did not come.
void GlooGroup::barrier() {
  call("barrier", [&] { backend_->monitoredBarrier(c10d::BarrierOptions(), true); });
}

}  // namespace

std::unique_ptr<Group> make_gloo_group(const Rendezvous& rendezvous, const GlooOptions& options) {
  if (rendezvous.world() == 1) return make_single_group(options.name);
  return std::make_unique<GlooGroup>(rendezvous, options);
}

}  // namespace mm::dist
