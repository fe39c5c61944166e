#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace mm::step {

/// What an instruction does. The first group is built; `check` refuses the second, whose places are
/// kept for the other forms of parallelism (docs/parallelism.md has the table).
enum class Op : uint8_t {
  kLoad,       ///< takes the next micro-batch from the loader
  kForward,    ///< runs one joined segment, keeps its tape if it has a backward
  kBackward,   ///< one engine call over that tape; parameter gradients leave to the sink
  kReduce,     ///< sums one gradient bucket, or the loss, over a group
  kNorm,       ///< global gradient norm
  kClip,       ///< scales the gradients to the greatest norm allowed
  kUpdate,     ///< optimizer
  kRecompute,  ///< runs a segment's forward again from its kept inputs, for the tape alone
  kWeightGrad,
  kCollective,
  kSend,
  kReceive,
  kUnshard,
  kFree,
  kOffload,
  kFetch,
  kEma,
  kSnapshot,
};
inline constexpr int kOpCount = static_cast<int>(Op::kSnapshot) + 1;
inline constexpr bool op_is_built(Op op) { return op <= Op::kRecompute; }
/// Lower-case word of the table: "load", "weight_grad". For people and JSON keys; never used while
/// a step runs.
std::string_view op_name(Op op);

/// A queue runs its instructions in list order. Compute is the caller's thread; what is computed
/// ahead has one of its own; each group has a queue and a thread of its own, because two groups
/// that shared one could wait for each other on different ranks.
using Queue = int16_t;
inline constexpr Queue kComputeQueue = 0;
inline constexpr Queue kCopyQueue = 1;
inline constexpr Queue kAheadQueue = 2;
inline constexpr Queue kFirstGroupQueue = 3;
/// Queue of row `group` of Program::groups.
inline constexpr Queue group_queue(int group) {
  return static_cast<Queue>(kFirstGroupQueue + group);
}

/// `Instruction::bucket` of the reduction that sums the loss instead of gradients.
inline constexpr int kLossBucket = -2;

/// One line of a step's list. A field that its op does not use is -1.
struct Instruction {
  Op op = Op::kLoad;
  Queue queue = kComputeQueue;
  int micro_batch = -1;
  int chunk = -1;      ///< virtual pipeline stage
  int block = -1;      ///< row of Model::blocks
  int segment = -1;    ///< row of Program::segments
  int group = -1;      ///< row of Program::groups
  int bucket = -1;     ///< row of Program::buckets, or kLossBucket
  bool ahead = false;  ///< works on the micro-batch of the step that follows
  /// Indices of earlier instructions of this rank, on other queues; what stands earlier on the same
  /// queue is done anyway.
  std::vector<int> waits;

  bool operator==(const Instruction&) const = default;
};

}  // namespace mm::step
