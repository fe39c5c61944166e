#include "lib/dist/thread_group.h"

#include <ATen/core/grad_mode.h>

#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "lib/base/error.h"
#include "lib/dist/backend_errors.h"
#include "lib/dist/rank_order.h"
#include "lib/dist/thread_hub.h"

namespace mm::dist {
namespace {

at::Tensor flat(const at::Tensor& tensor) { return tensor.view({-1}); }

std::string describe(const char* op, const at::Tensor& tensor, int root = -1) {
  const std::string text =
      fmt::format("{} of {} x {}", op, tensor.numel(), c10::toString(tensor.scalar_type()));
  return root < 0 ? text : fmt::format("{} from rank {}", text, root);
}

class ThreadGroup final : public Group {
 public:
  ThreadGroup(std::shared_ptr<ThreadHub> hub, int rank, std::string name)
      : hub_(std::move(hub)), rank_(rank), name_(std::move(name)) {}
  ~ThreadGroup() override { hub_->leave(rank_); }
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return hub_->ranks(); }
  const std::string& name() const override { return name_; }

  void all_reduce_sum(at::Tensor tensor) override {
    all_reduce("all_reduce_sum", tensor, Reduction::kSum);
  }
  void all_reduce_max(at::Tensor tensor) override {
    all_reduce("all_reduce_max", tensor, Reduction::kMax);
  }
  void reduce_scatter_sum(at::Tensor out, const at::Tensor& in) override;
  void all_gather(at::Tensor out, const at::Tensor& in) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<std::string> all_gather_bytes(const std::string& bytes) override;
  void barrier() override {
    collective({.op = "barrier"}, [] {});
  }
  void abort(const std::string& reason) override { hub_->fail(reason); }

 private:
  void all_reduce(const char* op, const at::Tensor& tensor, Reduction reduction);
  /// Posts `call`, meets, checks that all ranks made the same call, runs `share`, meets again.
  void collective(HubCall call, const std::function<void()>& share);
  void meet(const std::string& op);
  void check_same(const std::string& op);
  [[noreturn]] void throw_error(const std::string& op, const std::string& reason) const {
    throw CommError("group \"{}\" (rank {} of {}): {} #{}: {}", name_, rank_, size(), op, sequence_,
                    reason);
  }

  std::shared_ptr<ThreadHub> hub_;
  const int rank_;
  const std::string name_;
  uint64_t sequence_ = 0;
};

void ThreadGroup::meet(const std::string& op) {
  const std::string failure = hub_->meet(rank_);
  if (!failure.empty()) throw_error(op, failure);
}

void ThreadGroup::check_same(const std::string& op) {
  for (int r = 0; r < size(); ++r) {
    const std::string& other = hub_->calls()[static_cast<size_t>(r)].op;
    const std::string& first = hub_->calls()[0].op;
    if (other == first) continue;
    const std::string reason = fmt::format("rank 0 calls {}, rank {} calls {}", first, r, other);
    hub_->fail(reason);
    throw_error(op, reason);
  }
}

void ThreadGroup::collective(HubCall call, const std::function<void()>& share) {
  const at::NoGradGuard no_grad;
  const std::string op = call.op;
  ++sequence_;
  hub_->post(rank_, std::move(call));
  meet(op);
  check_same(op);
  try {
    share();
  } catch (const std::exception& error) {
    hub_->fail(fmt::format("rank {}: {}", rank_, reason_of(error)));
    throw_error(op, reason_of(error));
  }
  meet(op);
  hub_->post(rank_, {});
}

// Rank r reduces the r-th piece of every rank's tensor and writes it to all of them: pieces are
// disjoint, so the ranks work at once without a lock and each element is added once.
void ThreadGroup::all_reduce(const char* op, const at::Tensor& tensor, Reduction reduction) {
  MM_CHECK(tensor.is_contiguous(), "{} takes contiguous tensors", op);
  collective({.op = describe(op, tensor), .in = flat(tensor.detach())}, [&] {
    const std::vector<int64_t> sizes = piece_sizes(tensor.numel(), size());
    int64_t start = 0;
    for (int r = 0; r < rank_; ++r) start += sizes[static_cast<size_t>(r)];
    const int64_t length = sizes[static_cast<size_t>(rank_)];
    if (length == 0) return;
    std::vector<at::Tensor> parts;
    for (const HubCall& call : hub_->calls()) parts.push_back(call.in.narrow(0, start, length));
    const at::Tensor result = combine_in_rank_order(parts, reduction);
    for (const at::Tensor& part : parts) part.copy_(result);
  });
}

void ThreadGroup::reduce_scatter_sum(at::Tensor out, const at::Tensor& in) {
  MM_CHECK(in.numel() == out.numel() * size(),
           "reduce_scatter_sum: in has {} elements, out {} x {} ranks", in.numel(), out.numel(),
           size());
  collective({.op = describe("reduce_scatter_sum", in), .in = in.detach().reshape({-1})}, [&] {
    std::vector<at::Tensor> parts;
    for (const HubCall& call : hub_->calls()) {
      parts.push_back(call.in.narrow(0, rank_ * out.numel(), out.numel()));
    }
    flat(out).copy_(combine_in_rank_order(parts, Reduction::kSum));
  });
}

void ThreadGroup::all_gather(at::Tensor out, const at::Tensor& in) {
  MM_CHECK(out.numel() == in.numel() * size(), "all_gather: out has {} elements, in {} x {} ranks",
           out.numel(), in.numel(), size());
  collective({.op = describe("all_gather", in), .in = in.detach().reshape({-1})}, [&] {
    for (int r = 0; r < size(); ++r) {
      flat(out)
          .narrow(0, r * in.numel(), in.numel())
          .copy_(hub_->calls()[static_cast<size_t>(r)].in);
    }
  });
}

void ThreadGroup::broadcast(at::Tensor tensor, int root) {
  MM_CHECK(root >= 0 && root < size(), "broadcast from rank {} in a group of {}", root, size());
  collective({.op = describe("broadcast", tensor, root), .in = tensor.detach()}, [&] {
    if (rank_ != root) tensor.copy_(hub_->calls()[static_cast<size_t>(root)].in);
  });
}

std::vector<std::string> ThreadGroup::all_gather_bytes(const std::string& bytes) {
  std::vector<std::string> all;
  collective({.op = "all_gather_bytes", .bytes = bytes}, [&] {
    for (const HubCall& call : hub_->calls()) all.push_back(call.bytes);
  });
  return all;
}

}  // namespace

std::vector<std::unique_ptr<Group>> make_thread_groups(int ranks,
                                                       const ThreadGroupOptions& options) {
  MM_CHECK(ranks >= 1, "a group needs at least one rank, not {}", ranks);
  auto hub = std::make_shared<ThreadHub>(ranks, options.timeout);
  std::vector<std::unique_ptr<Group>> groups;
  for (int r = 0; r < ranks; ++r)
    groups.push_back(std::make_unique<ThreadGroup>(hub, r, options.name));
  return groups;
}

void run_thread_ranks(int ranks, const ThreadGroupOptions& options,
                      const std::function<void(Group&)>& body) {
  std::vector<std::unique_ptr<Group>> groups = make_thread_groups(ranks, options);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (std::unique_ptr<Group>& group : groups) {
    threads.emplace_back([&body, &mutex, &first, &group] {
      try {
        body(*group);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!first) first = std::current_exception();
      }
      group.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace mm::dist
