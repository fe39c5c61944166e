#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "lib/data/column_file.h"
#include "lib/data/epoch_plan.h"
#include "lib/data/plan_table.h"

namespace mm::data {

/// All that a plan is a function of; stored with it.
struct PlanIdentity {
  PlanOptions options;
  uint64_t epoch = 0;
  uint64_t samples = 0;     ///< rows of the index, the dropped ones too
  uint64_t sizes_hash = 0;  ///< hash_sizes of the index's sizes

  friend bool operator==(const PlanIdentity&, const PlanIdentity&) = default;
};
PlanIdentity identity_of(std::span<const SampleSize> sizes, const PlanOptions& options,
                         uint64_t epoch);
/// Goes up when the same options give another plan, so that a stored one is not taken for it.
inline constexpr int kPlannerVersion = 2;
/// Goes up likewise, of plans of buckets alone.
inline constexpr int kBucketPlannerVersion = 1;
/// XXH3-64 of the sizes as the index stores them.
uint64_t hash_sizes(std::span<const SampleSize> sizes);
/// "plan-<16 hexadecimal digits>.mmp", from a hash of the identity: one plan, one name.
std::string plan_file_name(const PlanIdentity& identity);
/// 32 hexadecimal digits: XXH3-128 over the columns; equal plans have equal hashes, mapped or not.
std::string hash_plan(const PlanView& plan);

/// Writes a plan (docs/formats.md: plan file). Atomic: there is a whole file or none.
void write_plan(const std::filesystem::path& path, const PlanView& plan,
                const PlanIdentity& identity);

/// A plan, mapped, not read: opening costs one pass over it for the checksums and for the proof
/// that each row of the index stands in it exactly once (in a pack or among the dropped).
/// Immutable, thread-safe. To write shards in plan order: for each pack p of view(), for each row
/// of pack(p).
class PlanFile {
 public:
  /// Throws IoError, or DataError naming what does not fit.
  explicit PlanFile(const std::filesystem::path& path);

  const PlanIdentity& identity() const { return identity_; }
  PlanView view() const { return view_; }
  /// Throws DataError, naming the first difference, unless the plan was made for exactly these
  /// sizes.
  void check_matches(std::span<const SampleSize> sizes) const;

 private:
  ColumnFile file_;
  PlanIdentity identity_;
  PlanView view_;
};

class EpochPlanner;

/// The plan of one epoch, built in memory or mapped: the one way in for trainer, report and packer.
class EpochSteps {
 public:
  EpochSteps() = default;  ///< no steps
  /// With a `plan_directory` (it must exist), maps the plan's file there, or builds the plan and
  /// writes the file for the next one; an empty path builds in memory. Ranks may do so at once.
  /// Throws as EpochPlanner, write_plan and PlanFile do.
  EpochSteps(const EpochPlanner& planner, uint64_t epoch,
             const std::filesystem::path& plan_directory = {});
  PlanView view() const { return file_ ? file_->view() : table_.view(); }
  bool mapped() const { return file_ != nullptr; }

 private:
  PlanTable table_;
  std::unique_ptr<PlanFile> file_;
};

}  // namespace mm::data
