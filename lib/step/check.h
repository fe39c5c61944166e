#pragma once
#include <string>
#include <vector>

#include "lib/step/program.h"

namespace mm::step {

/// Something wrong in a list: `text` says what; `instruction` is -1 where no single one is at
/// fault.
struct Problem {
  int rank = 0;
  int instruction = -1;
  std::string text;
};
/// "rank 1, instruction 12 (reduce, bucket 3): ..."
std::string describe(const Problem& problem, const Program& program);

/// Runs the lists of all ranks of the data group symbolically and returns what is wrong, best
/// first; empty: the step
/// - terminates, with queues as FIFOs and collectives as rendezvous: a group's meet in the same
/// order with the same sizes;
/// - waits only for earlier instructions, and holds built operations only;
/// - writes each value once, before it is read and by an order that queues and waits guarantee, and
/// frees it after its last use;
/// - recomputes what its row says and nothing frozen, once, between forward and backward;
/// - completes a slot's gradient (all readers, in reverse program order) before its writer's
/// backward;
/// - adds parameter gradients in ascending micro-batch order, reduces each bucket once and after
/// its last contribution;
/// - has one norm after all reductions, at most one clip, then one update.
/// O(ranks x instructions x queues).
std::vector<Problem> check(const std::vector<const Program*>& ranks);
/// The same list on every rank of its group.
std::vector<Problem> check(const Program& program);

namespace detail {
/// The rules about one rank's values, buckets and update; its lists must be well formed.
void check_values(const Program& program, int rank, std::vector<Problem>& problems);
}  // namespace detail

}  // namespace mm::step
