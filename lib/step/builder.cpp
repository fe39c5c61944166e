#include "lib/step/builder.h"

#include <algorithm>

#include "lib/base/error.h"

namespace mm::step {
namespace {

template <typename T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

template <typename T>
void add_once(std::vector<T>& values, const T& value) {
  if (!contains(values, value)) values.push_back(value);
}

// How many segments read a slot and which block wrote it, and that each is written once and before
// it is read.
struct SlotUse {
  std::vector<int> written_by;  // [slots] block, -1: nobody
  std::vector<int> readers;     // [slots] segments

  explicit SlotUse(const model::Model& model)
      : written_by(model.slots.size(), -1), readers(model.slots.size(), 0) {
    for (int b = 0; b < static_cast<int>(model.blocks.size()); ++b) {
      for (const model::Step& step : model.blocks[b].steps) {
        if (const auto* segment = std::get_if<model::Segment>(&step)) add(model, *segment, b);
      }
    }
  }

 private:
  void add(const model::Model& model, const model::Segment& segment, int block) {
    for (model::Slot slot : segment.in) {
      MM_CHECK(written_by.at(slot) >= 0,
               "segment {} of block {} reads slot {} before it is written", segment.name,
               model.blocks[block].name, model.slots[slot]);
      readers[slot] += 1;
    }
    for (model::Slot slot : segment.out) {
      MM_CHECK(written_by.at(slot) < 0,
               "segment {} of block {} writes slot {}, which block {} wrote already", segment.name,
               model.blocks[block].name, model.slots[slot], model.blocks[written_by[slot]].name);
      written_by[slot] = block;
    }
  }
};

class Builder {
 public:
  Builder(const model::Model& model, const BuildOptions& options)
      : model_(model), options_(options), trainable_(options.trainable), use_(model) {
    if (trainable_.empty()) trainable_.assign(model.params.size(), true);
    MM_CHECK(trainable_.size() == model.params.size(), "{} flags for {} parameters",
             trainable_.size(), model.params.size());
    MM_CHECK(options.micro_batches > 0 && options.data_ranks > 0, "{} micro-batches, {} data ranks",
             options.micro_batches, options.data_ranks);
    needs_grad_ = options.forward_only ? std::vector<bool>(model.slots.size(), false)
                                       : model::slots_needing_grad(model, trainable_);
  }

  Program build() {
    program_.micro_batches = options_.micro_batches;
    program_.forward_only = options_.forward_only;
    program_.slots = static_cast<int>(model_.slots.size());
    if (options_.data_ranks > 1) program_.groups.push_back({"data", options_.data_ranks});
    for (int b = 0; b < static_cast<int>(model_.blocks.size()); ++b) add_rows(b);
    if (!options_.forward_only) take_buckets();
    for (int m = 0; m < options_.micro_batches; ++m) add_micro_batch(m);
    if (!options_.forward_only) add_update();
    return std::move(program_);
  }

 private:
  bool wants_recompute(const model::Segment& segment) const {
    const Recompute& recompute = options_.recompute;
    if (recompute.kind == Recompute::Kind::kNone || segment.yields_loss) return false;
    if (recompute.kind == Recompute::Kind::kBlock) return true;
    // Nothing is kept of frozen segments; they stay one row.
    if (std::none_of(segment.out.begin(), segment.out.end(),
                     [&](model::Slot slot) { return needs_grad_[slot]; }))
      return false;
    return std::any_of(
        recompute.pieces.begin(), recompute.pieces.end(),
        [&](const std::string& piece) { return segment.name.ends_with("." + piece); });
  }

  // A block's segments as one row, or as several where recompute treats them apart.
  void add_rows(int block) {
    const std::vector<model::Step>& steps = model_.blocks[block].steps;
    int first = 0;
    bool again = false;
    for (int s = 0; s < static_cast<int>(steps.size()); ++s) {
      const auto* segment = std::get_if<model::Segment>(&steps[s]);
      if (segment == nullptr) continue;
      const bool mine = wants_recompute(*segment);
      if (mine != again && s > first) {
        program_.segments.push_back(join(block, first, s, again));
        first = s;
      }
      again = mine;
    }
    program_.segments.push_back(join(block, first, static_cast<int>(steps.size()), again));
  }

  // Steps [first, end) of a block as one: slots that nothing else reads stay inside.
  SegmentRow join(int block, int first, int end, bool recompute) const {
    const model::Block& source = model_.blocks[block];
    SegmentRow row{.block = block, .first_step = first, .steps = end - first};
    std::vector<const model::Segment*> segments;
    for (int s = first; s < end; ++s) {
      if (const auto* segment = std::get_if<model::Segment>(&source.steps[s]))
        segments.push_back(segment);
    }
    for (const model::Segment* segment : segments) add_segment(row, *segment, segments);
    for (model::Slot slot : row.in) row.in_needs_grad.push_back(needs_grad_[slot]);
    for (model::Slot slot : row.out) {
      row.out_needs_grad.push_back(needs_grad_[slot]);
      row.has_backward |= needs_grad_[slot];
    }
    if (!row.has_backward) row.trained.clear();
    row.recompute = recompute && row.has_backward;
    mark_frozen(row);
    if (!options_.compute.empty())
      row.compute = options_.compute.at(static_cast<size_t>(source.part));
    return row;
  }

  void mark_frozen(SegmentRow& row) const {
    const model::Part part = model_.blocks[row.block].part;
    if (row.has_backward || part == model::Part::kLanguage) return;
    if (part == model::Part::kVision) row.pictures_at_once = options_.pictures_at_once;
    const auto of_ahead = [&](model::Slot slot) {
      return std::any_of(program_.segments.begin(), program_.segments.end(),
                         [&](const SegmentRow& r) { return r.ahead && contains(r.out, slot); });
    };
    row.ahead = options_.frozen_ahead && !options_.forward_only &&
                std::all_of(row.in.begin(), row.in.end(), of_ahead);
  }

  void add_segment(SegmentRow& row, const model::Segment& segment,
                   const std::vector<const model::Segment*>& all) const {
    for (model::Slot slot : segment.in) {
      const bool inside = std::any_of(all.begin(), all.end(), [&](const model::Segment* other) {
        return contains(other->out, slot);
      });
      if (!inside) add_once(row.in, slot);
    }
    for (model::Slot slot : segment.out) {
      const bool loss = segment.yields_loss && slot == segment.out.front();
      const auto reads = [&](const model::Segment* other) { return contains(other->in, slot); };
      const bool read_outside = std::count_if(all.begin(), all.end(), reads) < use_.readers[slot];
      if (loss || read_outside) row.out.push_back(slot);
      if (loss) {
        MM_CHECK(row.loss < 0, "block {} yields two losses", model_.blocks[row.block].name);
        row.loss = static_cast<int>(row.out.size()) - 1;
      }
      // Nobody reads them; the executor hands them to the report.
      if (slot == model_.sample_losses_slot) row.out.push_back(slot);
      // The head writes logits only when a batch asks for them.
      if (slot == model_.logits_slot && options_.forward_only && !read_outside)
        row.out.push_back(slot);
    }
    for (model::ParamId id : segment.params) {
      add_once(row.params, id);
      if (trainable_[id] && !options_.forward_only) add_once(row.trained, id);
    }
  }

  // Buckets in the order given; feeds_[b] counts the segments whose backward adds to bucket b.
  void take_buckets() {
    std::vector<int> bucket_of(model_.params.size(), -1);
    program_.buckets = options_.buckets;
    for (int b = 0; b < static_cast<int>(program_.buckets.size()); ++b) {
      for (model::ParamId id : program_.buckets[b].params) {
        MM_CHECK(bucket_of.at(id) < 0, "parameter {} lies in buckets {} and {}",
                 model_.params[id].name, bucket_of[id], b);
        bucket_of[id] = b;
      }
    }
    feeds_.assign(program_.buckets.size(), {});
    for (int s = 0; s < static_cast<int>(program_.segments.size()); ++s) {
      for (model::ParamId id : program_.segments[s].trained) {
        MM_CHECK(bucket_of[id] >= 0, "trainable parameter {} lies in no bucket",
                 model_.params[id].name);
        add_once(feeds_[bucket_of[id]], s);
      }
    }
  }

  void add_micro_batch(int m) {
    const int count = static_cast<int>(program_.segments.size());
    const bool last = m == options_.micro_batches - 1;
    add_loads(m);
    for (int s = 0; s < count; ++s) {
      if (!program_.segments[s].ahead) add(segment_instruction(Op::kForward, m, s));
    }
    if (last) add_reduce(kLossBucket);
    if (options_.forward_only) return;
    if (last) add_ready_buckets(count);
    for (int s = count - 1; s >= 0; --s) {
      if (!program_.segments[s].has_backward) continue;
      if (program_.segments[s].recompute) add(segment_instruction(Op::kRecompute, m, s));
      add(segment_instruction(Op::kBackward, m, s));
      if (last) add_ready_buckets(s);
    }
  }

  void add_loads(int m) {
    const bool ahead = std::any_of(program_.segments.begin(), program_.segments.end(),
                                   [](const SegmentRow& row) { return row.ahead; });
    if (!ahead) return add({.op = Op::kLoad, .micro_batch = m});
    program_.ahead = true;
    add({.op = Op::kLoad, .queue = kAheadQueue, .micro_batch = m, .ahead = true});
    for (int s = 0; s < static_cast<int>(program_.segments.size()); ++s) {
      if (!program_.segments[s].ahead) continue;
      Instruction forward = segment_instruction(Op::kForward, m, s);
      forward.queue = kAheadQueue;
      forward.ahead = true;
      add(std::move(forward));
    }
  }

  // Backwards run from the last segment to the first: a bucket is complete after the lowest segment
  // that feeds it. `done` == number of segments: before any backward (buckets that nothing feeds).
  void add_ready_buckets(int done) {
    const int count = static_cast<int>(program_.segments.size());
    for (int b = 0; b < static_cast<int>(feeds_.size()); ++b) {
      const int lowest =
          feeds_[b].empty() ? count : *std::min_element(feeds_[b].begin(), feeds_[b].end());
      if (lowest == done) add_reduce(b);
    }
  }

  void add_reduce(int bucket) {
    if (options_.data_ranks == 1) return;
    // The group's queue is a FIFO: what an earlier reduction waited for need not be named again.
    std::vector<int> waits;
    if (last_on_compute_ != reduce_waited_for_) waits.push_back(last_on_compute_);
    reduce_waited_for_ = last_on_compute_;
    last_reduce_ = static_cast<int>(program_.list.size());
    add({.op = Op::kReduce,
         .queue = group_queue(0),
         .group = 0,
         .bucket = bucket,
         .waits = std::move(waits)});
  }

  void add_update() {
    Instruction norm{.op = Op::kNorm};
    if (last_reduce_ >= 0) norm.waits.push_back(last_reduce_);
    add(std::move(norm));
    if (options_.clip) add({.op = Op::kClip});
    add({.op = Op::kUpdate});
  }

  Instruction segment_instruction(Op op, int micro_batch, int segment) const {
    return {.op = op,
            .micro_batch = micro_batch,
            .block = program_.segments[segment].block,
            .segment = segment};
  }

  void add(Instruction instruction) {
    if (instruction.queue == kComputeQueue)
      last_on_compute_ = static_cast<int>(program_.list.size());
    program_.list.push_back(std::move(instruction));
  }

  const model::Model& model_;
  const BuildOptions& options_;
  std::vector<bool> trainable_;
  SlotUse use_;
  std::vector<bool> needs_grad_;  // [slots]
  Program program_;
  std::vector<std::vector<int>> feeds_;  // [buckets] segments
  int last_on_compute_ = -1, last_reduce_ = -1, reduce_waited_for_ = -1;
};

}  // namespace

Program build_step(const model::Model& model, const BuildOptions& options) {
  return Builder(model, options).build();
}

}  // namespace mm::step
