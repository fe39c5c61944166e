#include "lib/step/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace mm::step {
namespace {

// Instructions of one queue, one after another, drawn as one.
struct Cell {
  Queue queue = kComputeQueue;
  int first = 0, last = 0;  // instruction indices
  int column = 0;
};

bool is_segment_op(const Instruction& i) {
  return i.op == Op::kForward || i.op == Op::kBackward || i.op == Op::kRecompute;
}

std::string label(const Program& program, const Cell& cell) {
  const Instruction& i = program.list[cell.first];
  // A small r: a large one is a reduction.
  const char letter =
      i.op == Op::kRecompute ? 'r' : static_cast<char>(op_name(i.op)[0] - 'a' + 'A');
  if (i.op == Op::kReduce) return i.bucket == kLossBucket ? "Rl" : fmt::format("R{}", i.bucket);
  if (i.op == Op::kLoad) return fmt::format("L{}", i.micro_batch);
  if (!is_segment_op(i)) return std::string(1, letter);
  const int last = program.list[cell.last].segment;
  if (last == i.segment) return fmt::format("{}{}.{}", letter, i.micro_batch, i.segment);
  return fmt::format("{}{}.{}-{}", letter, i.micro_batch, i.segment, last);
}

std::vector<Cell> cells_of(const Program& program, bool join_runs) {
  std::vector<bool> watched(program.list.size(), false);
  for (const Instruction& i : program.list) {
    for (int wait : i.waits) watched[wait] = true;
  }
  std::vector<Cell> cells;
  std::map<Queue, int> open;  // last cell of each queue
  for (int index = 0; index < static_cast<int>(program.list.size()); ++index) {
    const Instruction& i = program.list[index];
    const auto found = open.find(i.queue);
    if (join_runs && found != open.end() && is_segment_op(i) && i.waits.empty()) {
      Cell& cell = cells[found->second];
      const Instruction& before = program.list[cell.last];
      if (before.op == i.op && before.micro_batch == i.micro_batch && !watched[cell.last]) {
        cell.last = index;
        continue;
      }
    }
    open[i.queue] = static_cast<int>(cells.size());
    cells.push_back({i.queue, index, index, 0});
  }
  return cells;
}

// Unit time: right of the cell before on the same queue and of all that it waits for.
void place(const Program& program, std::vector<Cell>& cells) {
  std::vector<int> end(program.list.size(), 0);
  std::map<Queue, int> free_at;
  for (Cell& cell : cells) {
    int start = free_at[cell.queue];
    for (int wait : program.list[cell.first].waits) start = std::max(start, end[wait]);
    cell.column = start;
    free_at[cell.queue] = start + 1;
    for (int i = cell.first; i <= cell.last; ++i) {
      if (program.list[i].queue == cell.queue) end[i] = start + 1;
    }
  }
}

std::string queue_name(const Program& program, Queue queue) {
  if (queue == kComputeQueue) return "compute";
  if (queue == kAheadQueue) return "ahead";
  return queue == kCopyQueue ? "copy" : program.groups.at(queue - kFirstGroupQueue).name;
}

std::string head(const Program& program, const model::Model& model) {
  std::string text =
      fmt::format("{} instructions, {} micro-batches, {} segments, {} buckets, hash {:016x}\n",
                  program.list.size(), program.micro_batches, program.segments.size(),
                  program.buckets.size(), program.hash());
  for (const GroupRow& group : program.groups)
    text += fmt::format("group {}: {} ranks\n", group.name, group.size);
  for (size_t s = 0; s < program.segments.size(); ++s) {
    const SegmentRow& row = program.segments[s];
    text += fmt::format("segment {:>3}  {:<28} {}\n", s, model.blocks[row.block].name,
                        row.ahead           ? "forward only, a step ahead"
                        : !row.has_backward ? "forward only"
                        : row.trained.empty()
                            ? "gradient passes through"
                            : fmt::format("trains {} of {} parameters{}", row.trained.size(),
                                          row.params.size(), row.recompute ? ", recomputed" : ""));
  }
  return text;
}

}  // namespace

std::string draw(const Program& program, const model::Model& model, const DrawOptions& options) {
  std::vector<Cell> cells = cells_of(program, options.join_runs);
  place(program, cells);
  size_t cell_width = 3;
  int columns = 0;
  std::map<Queue, std::map<int, std::string>> rows;
  for (const Cell& cell : cells) {
    std::string text = label(program, cell);
    cell_width = std::max(cell_width, text.size() + 1);
    columns = std::max(columns, cell.column + 1);
    rows[cell.queue][cell.column] = std::move(text);
  }
  size_t name_width = 0;
  for (const auto& [queue, row] : rows)
    name_width = std::max(name_width, queue_name(program, queue).size() + 2);
  const int per_band =
      std::max(1, (options.width - static_cast<int>(name_width)) / static_cast<int>(cell_width));
  std::string text = head(program, model);
  for (int from = 0; from < columns; from += per_band) {
    text += '\n';
    for (auto& [queue, row] : rows) {
      std::string line = fmt::format("{:<{}}", queue_name(program, queue), name_width);
      for (int c = from; c < std::min(columns, from + per_band); ++c) {
        const auto found = row.find(c);
        line += fmt::format("{:<{}}", found == row.end() ? "." : found->second, cell_width);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
    }
  }
  return text;
}

}  // namespace mm::step
