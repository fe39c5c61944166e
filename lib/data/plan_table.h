#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mm::data {

/// The steps of one epoch in three columns; borrowed from a PlanTable or from a mapped PlanFile, so
/// the trainer runs the same code on both. Pack p holds rows[pack_begin[p] .. pack_begin[p + 1]),
/// step s the packs [step_begin[s], step_begin[s + 1]).
struct PlanView {
  std::span<const uint32_t> rows;        ///< of the index, in plan order; none twice
  std::span<const uint64_t> pack_begin;  ///< [packs + 1], rising, from 0 to rows.size()
  std::span<const uint64_t> step_begin;  ///< [steps + 1], rising, from 0 to packs
  std::span<const uint32_t> dropped;     ///< rows of the index that no pack holds, ascending
  /// Of a bucketed set: [packs] pictures of weight 0 behind a pack's rows; else empty. A pack of
  /// fillers alone has no rows; its pictures have the shape of those of the first pack of its step.
  std::span<const uint32_t> fillers;

  uint64_t packs() const { return pack_begin.empty() ? 0 : pack_begin.size() - 1; }
  uint64_t steps() const { return step_begin.empty() ? 0 : step_begin.size() - 1; }
  std::span<const uint32_t> pack(uint64_t p) const {
    return rows.subspan(pack_begin[p], pack_begin[p + 1] - pack_begin[p]);
  }
  uint64_t packs_of_step(uint64_t s) const { return step_begin[s + 1] - step_begin[s]; }
  uint32_t fillers_of(uint64_t p) const { return fillers.empty() ? 0 : fillers[p]; }
};

/// A plan in memory: 4 bytes a sample, 8 a pack, 8 a step.
struct PlanTable {
  std::vector<uint32_t> rows;
  std::vector<uint64_t> pack_begin{0};
  std::vector<uint64_t> step_begin{0};
  std::vector<uint32_t> dropped;
  std::vector<uint32_t> fillers;

  PlanView view() const { return {rows, pack_begin, step_begin, dropped, fillers}; }
  /// Ends the pack that the rows since the last end make up; without such rows nothing happens.
  void end_pack() {
    if (rows.size() > pack_begin.back()) pack_begin.push_back(rows.size());
  }
  /// Ends a pack of a bucketed set, which may have no rows.
  void end_filled_pack(uint32_t with_fillers) {
    pack_begin.push_back(rows.size());
    fillers.push_back(with_fillers);
  }
  /// Ends the step likewise.
  void end_step() {
    if (pack_begin.size() - 1 > step_begin.back()) step_begin.push_back(pack_begin.size() - 1);
  }
};

}  // namespace mm::data
