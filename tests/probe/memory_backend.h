#pragma once
#include <barrier>
#include <memory>
#include <vector>

#include "lib/probe/collective_backend.h"

namespace mm::probe::test {

/// What the ranks of one process share.
struct MemoryHub {
  explicit MemoryHub(int world) : inputs(static_cast<size_t>(world)), meet(world) {}
  std::vector<std::vector<float>> inputs;
  std::barrier<> meet;
};

/// Ranks in threads of one process, computed from the definition.  `spoil`: this rank's results get
/// one wrong element.
class MemoryBackend final : public CollectiveBackend {
 public:
  MemoryBackend(MemoryHub& hub, int rank) : hub_(hub), rank_(rank) {}
  bool spoil = false;
  std::string name() const override { return "memory"; }
  std::string version() const override { return ""; }
  std::string device() const override { return "host"; }
  bool can_in_place(Collective collective) const override {
    return collective == Collective::kAllReduce;
  }
  void reserve(size_t, int) override {}
  void put(const CollectiveCall&, std::span<const float> input) override {
    hub_.inputs[static_cast<size_t>(rank_)].assign(input.begin(), input.end());
  }
  void run(const CollectiveCall& call, int times) override {
    for (int i = 0; i < times; ++i) once(call);
  }
  void get(const CollectiveCall&, std::span<float> output) override {
    std::copy(output_.begin(), output_.end(), output.begin());
  }

 private:
  float at(size_t rank, size_t index) const { return hub_.inputs[rank][index]; }
  float value(const CollectiveCall& call, size_t index) const {
    const size_t n = hub_.inputs.size(), rank = static_cast<size_t>(rank_), part = call.count / n;
    const auto sum = [&](size_t i) {
      float total = 0;
      for (size_t r = 0; r < n; ++r) total += at(r, i);
      return total;
    };
    switch (call.collective) {
      case Collective::kAllReduce:
      case Collective::kReduce:
        return sum(index);
      case Collective::kReduceScatter:
        return sum(rank * part + index);
      case Collective::kAllGather:
        return at(index / part, index % part);
      case Collective::kAllToAll:
        return at(index / part, rank * part + index % part);
      case Collective::kBroadcast:
        return at(0, index);
      case Collective::kSendReceive:
        break;
    }
    return at((rank + n - 1) % n, index);
  }
  void once(const CollectiveCall& call) {
    hub_.meet.arrive_and_wait();
    output_.resize(output_count(call, static_cast<int>(hub_.inputs.size())));
    for (size_t i = 0; i < output_.size(); ++i) output_[i] = value(call, i);
    if (spoil) output_[output_.size() / 2] += 1;
    hub_.meet.arrive_and_wait();
  }

  MemoryHub& hub_;
  int rank_;
  std::vector<float> output_;
};

}  // namespace mm::probe::test
