#pragma once
#include <cstdint>
#include <vector>

#include "lib/data/pack_dataset.h"
#include "lib/data/pack_unit.h"
#include "lib/data/pack_workspace.h"
#include "lib/data/row_set.h"
#include "lib/data/sample_builder.h"

namespace mm::data {

/// Every row of the source, done.
struct PackedUnits {
  std::vector<UnitTable> tables;  ///< in source order
  RowSet rows;                    ///< what the source gave, as this task read it
  uint64_t left_out = 0;          ///< by --ids and --exclude
  uint64_t reused = 0;            ///< units that were there before
};

/// Does the units of the source together with the other tasks of the job: first every tasks-th,
/// then what others have not begun or left behind when they died, then waits for the rest. Units
/// that an earlier run left are checked byte by byte by the task whose share they are. Throws what
/// the source throws, IoError, and DataError as soon as it is certain that too many samples are
/// bad.
PackedUnits pack_units(const PackOptions& options, const SampleBuilder& builder, const PackRun& run,
                       PackWorkspace& workspace);

}  // namespace mm::data
