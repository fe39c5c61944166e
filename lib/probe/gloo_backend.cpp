#include "lib/probe/gloo_backend.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "lib/base/error.h"

namespace mm::probe {
namespace {

using Store = c10::intrusive_ptr<c10d::Store>;
using Tensors = std::vector<at::Tensor>;

std::chrono::milliseconds ms(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
}

c10d::TCPStoreOptions store_options(const GlooBackendOptions& options, bool server) {
  c10d::TCPStoreOptions store{.port = 0, .isServer = server};
  store.waitWorkers = false;
  store.timeout = ms(options.timeout_s);
  return store;
}

// Where all ranks find rank 0's store; it serves on a free port. The store goes by the star's
// network, since the collective's may be the one that is broken. Collective; CommError on all.
struct StorePlace {
  Store server;  ///< of rank 0
  std::string host;
  uint16_t port = 0;
};
StorePlace serve_store(const GlooBackendOptions& options, RankStar& star) {
  StorePlace place;
  std::string failure, text;
  if (star.rank() == 0) {
    try {
      auto server =
          c10::make_intrusive<c10d::TCPStore>("0.0.0.0", store_options(options, /*server=*/true));
      text = fmt::format("{} {}", server->getPort(), star.own_address());
      place.server = std::move(server);
    } catch (const std::exception& error) {
      failure = fmt::format("gloo: store of rank 0: {}", error.what());
    }
  }
  text = star.broadcast(text);
  star.agree(failure);
  const size_t blank = text.find(' ');
  place.port = static_cast<uint16_t>(std::stoi(text.substr(0, blank)));
  place.host = text.substr(blank + 1);
  return place;
}

Store reach_store(const GlooBackendOptions& options, const StorePlace& place) {
  if (place.server) return place.server;
  c10d::TCPStoreOptions store = store_options(options, /*server=*/false);
  store.port = place.port;
  return c10::make_intrusive<c10d::TCPStore>(place.host, store);
}

class GlooBackend final : public CollectiveBackend {
 public:
  GlooBackend(const GlooBackendOptions& options, RankStar& star) : star_rank_(star.rank()) {
    const auto& members = options.members;
    size_ = static_cast<int>(members.size());
    rank_ =
        static_cast<int>(std::find(members.begin(), members.end(), star.rank()) - members.begin());
    const StorePlace place = serve_store(options, star);
    std::string failure;
    try {
      guarded("connect", [&] { connect(options, place); });
    } catch (const CommError& error) {
      failure = error.what();
    }
    // Nobody leaves with the store while others connect, and nobody alone.
    star.set_timeout(2 * options.timeout_s + 30);
    star.agree(failure);
  }

  std::string name() const override { return "gloo"; }
  std::string version() const override { return ""; }
  std::string device() const override { return "CPU"; }
  bool can_in_place(Collective collective) const override {
    return collective == Collective::kAllReduce || collective == Collective::kBroadcast ||
           collective == Collective::kReduce;
  }
  void reserve(size_t count, int) override {
    send_ = at::empty({static_cast<int64_t>(count)});
    receive_ = at::empty({static_cast<int64_t>(count)});
  }
  void put(const CollectiveCall& call, std::span<const float> input) override {
    receive_.zero_();
    at::Tensor& to = call.in_place ? receive_ : send_;
    std::memcpy(to.mutable_data_ptr<float>(), input.data(), input.size_bytes());
  }
  void get(const CollectiveCall&, std::span<float> output) override {
    std::memcpy(output.data(), receive_.const_data_ptr<float>(), output.size_bytes());
  }
  void run(const CollectiveCall& call, int times) override {
    const at::NoGradGuard no_grad;
    guarded(word(call.collective), [&] {
      for (int i = 0; i < times; ++i) run_once(call);
    });
  }

 private:
  template <typename Body>
  void guarded(const char* what, Body&& body) {
    try {
      body();
    } catch (const c10::Error& error) {
      throw CommError("gloo: {} on rank {}: {}", what, star_rank_, error.what_without_backtrace());
    } catch (const std::exception& error) {
      throw CommError("gloo: {} on rank {}: {}", what, star_rank_, error.what());
    }
  }
  void connect(const GlooBackendOptions& options, const StorePlace& place) {
    store_ = reach_store(options, place);
    auto prefix = c10::make_intrusive<c10d::PrefixStore>(
        fmt::format("group/{}", options.members.front()), store_);
    auto gloo = c10d::ProcessGroupGloo::Options::create(ms(options.timeout_s));
    gloo->devices = {c10d::ProcessGroupGloo::createDeviceForHostname(options.address)};
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(prefix, rank_, size_, gloo);
  }
  at::Tensor part(const at::Tensor& tensor, size_t count) const {
    return tensor.narrow(0, 0, static_cast<int64_t>(count));
  }
  void run_once(const CollectiveCall& call);

  int star_rank_, rank_ = 0, size_ = 1;
  Store store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  at::Tensor send_, receive_;
};

// Gloo's reductions and broadcasts work in place; out of place they cost a copy, which is timed.
void GlooBackend::run_once(const CollectiveCall& call) {
  at::Tensor in = part(send_, input_count(call, size_));
  at::Tensor out = part(receive_, output_count(call, size_));
  Tensors outs = {out}, ins = {in};
  const bool copies = call.collective == Collective::kAllReduce ||
                      call.collective == Collective::kBroadcast ||
                      call.collective == Collective::kReduce;
  if (copies && !call.in_place) out.copy_(in);
  switch (call.collective) {
    case Collective::kAllReduce:
      group_->allreduce(outs)->wait();
      return;
    case Collective::kBroadcast: {
      c10d::BroadcastOptions options;
      options.rootRank = call.root;
      group_->broadcast(outs, options)->wait();
      return;
    }
    case Collective::kReduce: {
      c10d::ReduceOptions options;
      options.rootRank = call.root;
      group_->reduce(outs, options)->wait();
      return;
    }
    case Collective::kAllGather:
      group_->_allgather_base(out, in)->wait();
      return;
    case Collective::kReduceScatter:
      group_->_reduce_scatter_base(out, in)->wait();
      return;
    case Collective::kAllToAll: {
      std::vector<int64_t> even;
      group_->alltoall_base(out, in, even, even)->wait();
      return;
    }
    case Collective::kSendReceive:
      break;
  }
  if (size_ == 1) {
    out.copy_(in);
    return;
  }
  auto sent = group_->send(ins, (rank_ + 1) % size_, 0);
  auto received = group_->recv(outs, (rank_ + size_ - 1) % size_, 0);
  sent->wait();
  received->wait();
}

}  // namespace

std::unique_ptr<CollectiveBackend> make_gloo_backend(const GlooBackendOptions& options,
                                                     RankStar& star) {
  return std::make_unique<GlooBackend>(options, star);
}

}  // namespace mm::probe
