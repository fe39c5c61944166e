#include <fmt/format.h>

#include <algorithm>

#include "lib/step/check.h"
#include "lib/step/happens_before.h"
#include "lib/step/liveness.h"

namespace mm::step::detail {
namespace {

class ValueCheck {
 public:
  ValueCheck(const Program& program, int rank, std::vector<Problem>& problems)
      : program_(program), before_(program.list), rank_(rank), problems_(problems) {}

  void run() {
    if (!collect()) return;
    for (int m = 0; m < program_.micro_batches; ++m) {
      for (int s = 0; s < segments(); ++s) check_forward(m, s);
      check_ahead(m);
      if (program_.forward_only) continue;
      for (int s = segments() - 1; s >= 0; --s) check_backward(m, s);
    }
    check_frees();
    if (!program_.groups.empty()) check_reduce(kLossBucket, loss_forwards());
    if (!program_.forward_only) check_update();
  }

 private:
  int segments() const { return static_cast<int>(program_.segments.size()); }
  int at(int m, int s) const { return m * segments() + s; }

  void problem(int instruction, std::string text) {
    problems_.push_back({rank_, instruction, std::move(text)});
  }

  void need_before(int first, int second, const char* what) {
    if (!before_(first, second))
      problem(second, fmt::format("{} {} is not surely done before", what, first));
  }

  // Puts every instruction in its place; false if one is missing or there twice, for then the other
  // rules say nothing new.
  bool collect() {
    load_.assign(program_.micro_batches, -1);
    forward_.assign(static_cast<size_t>(program_.micro_batches) * segments(), -1);
    backward_ = recompute_ = forward_;
    const size_t before = problems_.size();
    for (int i = 0; i < static_cast<int>(program_.list.size()); ++i) collect(i);
    for (int m = 0; m < program_.micro_batches; ++m) {
      if (load_[m] < 0) problem(-1, fmt::format("micro-batch {} is never loaded", m));
      for (int s = 0; s < segments(); ++s) need_segment(m, s);
    }
    return problems_.size() == before;
  }

  void collect(int index) {
    const Instruction& i = program_.list[index];
    switch (i.op) {
      case Op::kLoad:
        return place(load_[i.micro_batch], index);
      case Op::kForward:
        return place(forward_[at(i.micro_batch, i.segment)], index);
      case Op::kBackward:
        return place(backward_[at(i.micro_batch, i.segment)], index);
      case Op::kRecompute:
        return place(recompute_[at(i.micro_batch, i.segment)], index);
      case Op::kReduce:
        return reduces_.push_back(index);
      case Op::kNorm:
        return place(norm_, index);
      case Op::kClip:
        return place(clip_, index);
      case Op::kUpdate:
        return place(update_, index);
      default:
        return;
    }
  }

  void place(int& where, int index) {
    if (where >= 0) problem(index, fmt::format("repeats instruction {}", where));
    where = index;
  }

  void need_segment(int m, int s) {
    if (forward_[at(m, s)] < 0)
      problem(-1, fmt::format("segment {} has no forward of micro-batch {}", s, m));
    const SegmentRow& row = program_.segments[s];
    const bool trains = row.has_backward && !program_.forward_only;
    need(trains, backward_[at(m, s)], "backward", m, s);
    need(trains && row.recompute, recompute_[at(m, s)], "recompute", m, s);
  }

  void need(bool wanted, int index, const char* what, int m, int s) {
    if (wanted == (index >= 0)) return;
    problem(index, wanted ? fmt::format("segment {} has no {} of micro-batch {}", s, what, m)
                          : fmt::format("segment {} needs no {}", s, what));
  }

  bool is_ahead(int instruction) const { return program_.list[instruction].ahead; }

  // What works a step ahead is complete when its step begins, so its readers need no wait; it must
  // not itself look at what the step before it still makes.
  void check_ahead(int m) {
    if (is_ahead(load_[m]) != program_.ahead)
      problem(load_[m],
              program_.ahead ? "loads nothing ahead" : "loads ahead, but nothing else does");
    for (int s = 0; s < segments(); ++s) {
      const int me = forward_[at(m, s)];
      const SegmentRow& row = program_.segments[s];
      if (is_ahead(me) != row.ahead)
        problem(me,
                fmt::format("segment {} {} ahead", s, row.ahead ? "should run" : "must not run"));
      if (row.ahead && (row.has_backward || !row.trained.empty()))
        problem(me, fmt::format("segment {} trains and cannot run ahead", s));
    }
  }

  // Whether an input that `first` writes is there when `second` runs.
  void need_written(int first, int second, const char* what) {
    if (is_ahead(first) && !is_ahead(second)) return;
    if (is_ahead(second) && !is_ahead(first))
      return problem(second, fmt::format("runs ahead of {} {}", what, first));
    need_before(first, second, what);
  }

  void check_forward(int m, int s) {
    const int me = forward_[at(m, s)];
    need_written(load_[m], me, "load");
    for (model::Slot slot : program_.segments[s].in) {
      const int writer = writer_of(slot);
      if (writer < 0) {
        problem(me, fmt::format("reads slot {}, which nothing writes", slot));
      } else {
        need_written(forward_[at(m, writer)], me, "the writer of an input, instruction");
      }
    }
  }

  // After its forward, after the backward of all later readers of its outputs, and those in reverse
  // program order; parameter gradients in ascending micro-batch order.
  void check_backward(int m, int s) {
    const int me = backward_[at(m, s)];
    if (me < 0) return;
    need_before(forward_[at(m, s)], me, "its forward, instruction");
    if (const int again = recompute_[at(m, s)]; again >= 0) {
      need_before(forward_[at(m, s)], again, "its forward, instruction");
      need_before(again, me, "its recompute, instruction");
    }
    if (m > 0)
      need_before(backward_[at(m - 1, s)], me, "the last micro-batch's backward, instruction");
    for (model::Slot slot : program_.segments[s].out) {
      int later = -1;
      for (int reader = segments() - 1; reader > s; --reader) {
        if (!sends_gradient(reader, slot)) continue;
        const int contribution = backward_[at(m, reader)];
        need_before(contribution, me, "a reader's backward, instruction");
        if (later >= 0) need_before(later, contribution, "a later reader's backward, instruction");
        later = contribution;
      }
    }
  }

  bool sends_gradient(int segment, model::Slot slot) const {
    const SegmentRow& row = program_.segments[segment];
    for (size_t i = 0; i < row.in.size(); ++i) {
      if (row.in[i] == slot && row.in_needs_grad[i]) return row.has_backward;
    }
    return false;
  }

  int writer_of(model::Slot slot) const {
    for (int s = 0; s < segments(); ++s) {
      const auto& out = program_.segments[s].out;
      if (std::find(out.begin(), out.end(), slot) != out.end()) return s;
    }
    return -1;
  }

  // A value goes after its last reader in list order: the others must surely be done by then.
  void check_frees() {
    const Liveness live = liveness(program_);
    for (int i = 0; i < static_cast<int>(program_.list.size()); ++i) {
      for (model::Slot slot : live.free_slots[i]) {
        for (int s = 0; s < segments(); ++s) {
          const auto& in = program_.segments[s].in;
          if (std::find(in.begin(), in.end(), slot) == in.end()) continue;
          for (const std::vector<int>* readers : {&forward_, &recompute_}) {
            const int reader = (*readers)[at(program_.list[i].micro_batch, s)];
            if (reader >= 0 && reader != i && (!is_ahead(reader) || is_ahead(i)))
              need_before(reader, i, "frees a slot that is read by instruction");
          }
        }
      }
    }
  }

  std::vector<int> loss_forwards() const {
    std::vector<int> found;
    for (int m = 0; m < program_.micro_batches; ++m) {
      for (int s = 0; s < segments(); ++s) {
        if (program_.segments[s].loss >= 0) found.push_back(forward_[at(m, s)]);
      }
    }
    return found;
  }

  std::vector<int> contributions(int bucket) const {
    std::vector<int> found;
    const auto& params = program_.buckets[bucket].params;
    for (int s = 0; s < segments(); ++s) {
      const auto& trained = program_.segments[s].trained;
      if (std::find_first_of(trained.begin(), trained.end(), params.begin(), params.end()) ==
          trained.end())
        continue;
      for (int m = 0; m < program_.micro_batches; ++m) found.push_back(backward_[at(m, s)]);
    }
    return found;
  }

  void check_reduce(int bucket, const std::vector<int>& sources) {
    std::vector<int> mine;
    for (int i : reduces_) {
      if (program_.list[i].bucket == bucket) mine.push_back(i);
    }
    const std::string name = bucket == kLossBucket ? "the loss" : fmt::format("bucket {}", bucket);
    if (mine.size() != 1) {
      problem(mine.empty() ? -1 : mine[1],
              fmt::format("{} is reduced {} times, not once", name, mine.size()));
    }
    for (int reduce : mine) {
      for (int source : sources) need_before(source, reduce, "a contribution, instruction");
      if (norm_ >= 0) need_before(reduce, norm_, "a reduction, instruction");
    }
  }

  void check_update() {
    if (norm_ < 0) problem(-1, "there is no norm");
    if (update_ < 0) problem(-1, "there is no update");
    if (norm_ < 0 || update_ < 0) return;
    for (int b = 0; b < static_cast<int>(program_.buckets.size()); ++b) {
      const std::vector<int> sources = contributions(b);
      for (int source : sources) need_before(source, norm_, "a contribution, instruction");
      if (!program_.groups.empty()) check_reduce(b, sources);
    }
    need_before(norm_, update_, "the norm, instruction");
    if (clip_ < 0) return;
    need_before(norm_, clip_, "the norm, instruction");
    need_before(clip_, update_, "the clip, instruction");
  }

  const Program& program_;
  HappensBefore before_;
  int rank_;
  std::vector<Problem>& problems_;
  std::vector<int> load_, forward_, backward_, recompute_, reduces_;  // instruction indices
  int norm_ = -1, clip_ = -1, update_ = -1;
};

}  // namespace

void check_values(const Program& program, int rank, std::vector<Problem>& problems) {
  ValueCheck(program, rank, problems).run();
}

}  // namespace mm::step::detail
