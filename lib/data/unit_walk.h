#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/data/key_filter.h"
#include "lib/data/pack_options.h"
#include "lib/data/row_set.h"

namespace mm::data {

/// A number of consecutive records of the source.
struct SourceUnit {
  uint32_t number = 0;
  std::vector<SourceItem> items;  ///< empty: the source has ended
};

/// One pass over a source in units; many threads may take.
class UnitWalk {
 public:
  explicit UnitWalk(const PackOptions& options);
  SourceUnit take();

  // After the end:
  uint32_t units() const { return units_; }
  const RowSet& rows() const { return rows_; }
  const KeyFilter& filter() const { return filter_; }

 private:
  std::mutex mutex_;
  std::unique_ptr<RecordSource> source_;
  KeyFilter filter_;
  RowSet rows_;
  uint32_t units_ = 0;
};

}  // namespace mm::data
