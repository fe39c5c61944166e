#include "lib/probe/collective_backend.h"

namespace mm::probe {

size_t input_count(const CollectiveCall& call, int world) {
  return call.collective == Collective::kAllGather ? call.count / static_cast<size_t>(world)
                                                   : call.count;
}

size_t output_count(const CollectiveCall& call, int world) {
  return call.collective == Collective::kReduceScatter ? call.count / static_cast<size_t>(world)
                                                       : call.count;
}

float input_value(int rank, size_t index) {
  return static_cast<float>((index * 7 + static_cast<size_t>(rank) * 13) % 31);
}

Wanted output_value(const CollectiveCall& call, int world, int rank, size_t index) {
  const auto n = static_cast<size_t>(world);
  const size_t part = call.count / n;
  const auto sum_at = [&](size_t at) {
    float sum = 0;
    for (int r = 0; r < world; ++r) sum += input_value(r, at);
    return sum;
  };
  switch (call.collective) {
    case Collective::kAllReduce:
      return {true, sum_at(index)};
    case Collective::kReduce:
      return {rank == call.root, sum_at(index)};
    case Collective::kAllGather:
      return {true, input_value(static_cast<int>(index / part), index % part)};
    case Collective::kReduceScatter:
      return {true, sum_at(static_cast<size_t>(rank) * part + index)};
    case Collective::kAllToAll:
      return {true, input_value(static_cast<int>(index / part),
                                static_cast<size_t>(rank) * part + index % part)};
    case Collective::kBroadcast:
      return {true, input_value(call.root, index)};
    case Collective::kSendReceive:
      break;
  }
  return {true, input_value((rank + world - 1) % world, index)};
}

}  // namespace mm::probe
