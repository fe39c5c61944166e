#include "lib/step/check.h"

#include <fmt/format.h>

#include <algorithm>

namespace mm::step {
namespace {

bool in_range(int value, size_t count) { return value >= 0 && value < static_cast<int>(count); }

bool is_collective(const Instruction& i) { return i.op == Op::kReduce; }

// What is wrong with one instruction taken alone; empty: nothing.
std::string malformed(const Program& program, int index) {
  const Instruction& i = program.list[index];
  if (!op_is_built(i.op)) return fmt::format("operation {} is not built", op_name(i.op));
  for (int wait : i.waits) {
    if (wait < 0 || wait >= index)
      return fmt::format("waits for {}, which is not an earlier instruction", wait);
  }
  const bool runs_segment = i.op == Op::kForward || i.op == Op::kBackward || i.op == Op::kRecompute;
  const bool in_micro_batch = i.op == Op::kLoad || runs_segment;
  if (in_micro_batch && !in_range(i.micro_batch, program.micro_batches)) {
    return fmt::format("micro-batch {} of {}", i.micro_batch, program.micro_batches);
  }
  if (runs_segment && !in_range(i.segment, program.segments.size())) {
    return fmt::format("segment {} of {}", i.segment, program.segments.size());
  }
  if (!is_collective(i)) {
    const Queue home = i.ahead ? kAheadQueue : kComputeQueue;
    return i.queue == home ? "" : fmt::format("queue {} does not run {}", i.queue, op_name(i.op));
  }
  if (!in_range(i.group, program.groups.size()))
    return fmt::format("group {} of {}", i.group, program.groups.size());
  if (i.queue != group_queue(i.group))
    return fmt::format("queue {} is not that of group {}", i.queue, i.group);
  if (i.bucket != kLossBucket && !in_range(i.bucket, program.buckets.size())) {
    return fmt::format("bucket {} of {}", i.bucket, program.buckets.size());
  }
  return "";
}

// All ranks at once: an instruction runs when it heads its queue and its waits are done, a
// collective when every rank's is there.
class SymbolicRun {
 public:
  SymbolicRun(const std::vector<const Program*>& ranks, std::vector<Problem>& problems)
      : problems_(problems) {
    for (const Program* program : ranks) ranks_.emplace_back(*program);
  }

  void run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (Rank& rank : ranks_) moved |= rank.run_local();
      for (size_t g = 0; g < ranks_.front().program.groups.size(); ++g)
        moved |= meet(static_cast<int>(g));
    }
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) report_stuck(r);
  }

 private:
  struct Rank {
    explicit Rank(const Program& p) : program(p), done(p.list.size(), false) {
      for (int i = 0; i < static_cast<int>(p.list.size()); ++i) {
        const size_t queue = static_cast<size_t>(p.list[i].queue);
        if (queue >= queues.size()) queues.resize(queue + 1);
        queues[queue].push_back(i);
      }
      next.assign(queues.size(), 0);
    }
    // Head of the queue if its waits are done, else -1.
    int ready(size_t queue) const {
      if (queue >= queues.size() || next[queue] == queues[queue].size()) return -1;
      const int index = queues[queue][next[queue]];
      const auto& waits = program.list[index].waits;
      return std::all_of(waits.begin(), waits.end(), [&](int wait) { return done[wait]; }) ? index
                                                                                           : -1;
    }
    void finish(size_t queue) { done[queues[queue][next[queue]++]] = true; }
    bool run_local() {
      bool moved = false;
      for (size_t q = 0; q < queues.size(); ++q) {
        for (int i = ready(q); i >= 0 && !is_collective(program.list[i]); i = ready(q)) {
          finish(q);
          moved = true;
        }
      }
      return moved;
    }
    const Program& program;
    std::vector<std::vector<int>> queues;  // [queue] instruction indices
    std::vector<size_t> next;              // [queue]
    std::vector<bool> done;
  };

  bool meet(int group) {
    const auto queue = static_cast<size_t>(group_queue(group));
    std::vector<int> heads;
    for (const Rank& rank : ranks_) {
      heads.push_back(rank.ready(queue));
      if (heads.back() < 0) return false;
    }
    for (size_t r = 1; r < ranks_.size(); ++r) compare(static_cast<int>(r), heads[r], heads[0]);
    for (Rank& rank : ranks_) rank.finish(queue);
    return true;
  }

  void compare(int rank, int index, int first_index) {
    const Instruction& mine = ranks_[rank].program.list[index];
    const Instruction& first = ranks_[0].program.list[first_index];
    const int64_t my_size = elements(ranks_[rank].program, mine),
                  first_size = elements(ranks_[0].program, first);
    if (mine.op == first.op && mine.bucket == first.bucket && my_size == first_size) return;
    problems_.push_back(
        {rank, index,
         fmt::format("{} of bucket {} ({} elements) meets {} of bucket {} ({} elements) of rank 0",
                     op_name(mine.op), mine.bucket, my_size, op_name(first.op), first.bucket,
                     first_size)});
  }

  static int64_t elements(const Program& program, const Instruction& i) {
    return i.bucket == kLossBucket ? 1 : program.buckets[i.bucket].elements;
  }

  void report_stuck(int r) {
    const Rank& rank = ranks_[r];
    for (size_t q = 0; q < rank.queues.size(); ++q) {
      if (rank.next[q] == rank.queues[q].size()) continue;
      problems_.push_back(
          {r, rank.queues[q][rank.next[q]], fmt::format("queue {} waits for ever", q)});
    }
  }

  std::vector<Rank> ranks_;
  std::vector<Problem>& problems_;
};

bool check_form(const std::vector<const Program*>& ranks, std::vector<Problem>& problems) {
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    const Program& program = *ranks[r];
    for (const GroupRow& group : program.groups) {
      if (group.size != static_cast<int>(ranks.size())) {
        problems.push_back({r, -1,
                            fmt::format("group {} has {} ranks, {} are given", group.name,
                                        group.size, ranks.size())});
      }
    }
    if (program.groups.size() != ranks.front()->groups.size()) {
      problems.push_back({r, -1, "has other groups than rank 0"});
    }
    for (int i = 0; i < static_cast<int>(program.list.size()); ++i) {
      std::string text = malformed(program, i);
      if (!text.empty()) problems.push_back({r, i, std::move(text)});
    }
  }
  return problems.empty();
}

}  // namespace

std::vector<Problem> check(const std::vector<const Program*>& ranks) {
  std::vector<Problem> problems;
  if (ranks.empty() || !check_form(ranks, problems)) return problems;
  SymbolicRun(ranks, problems).run();
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    // Equal lists have equal problems; rank 0 names them.
    if (r > 0 && ranks[r] == ranks[0]) continue;
    detail::check_values(*ranks[r], r, problems);
  }
  return problems;
}

std::vector<Problem> check(const Program& program) {
  const int ranks = program.groups.empty() ? 1 : program.groups.front().size;
  return check(std::vector<const Program*>(ranks, &program));
}

std::string describe(const Problem& problem, const Program& program) {
  if (problem.instruction < 0) return fmt::format("rank {}: {}", problem.rank, problem.text);
  const Instruction& i = program.list[problem.instruction];
  return fmt::format("rank {}, instruction {} ({}, micro-batch {}, segment {}, bucket {}): {}",
                     problem.rank, problem.instruction, op_name(i.op), i.micro_batch, i.segment,
                     i.bucket, problem.text);
}

}  // namespace mm::step
