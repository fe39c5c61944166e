#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lib/data/bucket_report.h"
#include "lib/data/dataset.h"
#include "lib/data/pack_options.h"

namespace mmshard {

/// What `mmshard plan` takes of buckets.
struct BucketFlags {
  mm::data::PictureOptions pictures;  ///< buckets of a table of sizes
  std::string batch_pixels, leftovers = "keep";
};
void add_bucket_flags(CLI::App& verb, BucketFlags& flags);

/// One of the three is named.
struct PlanInput {
  std::filesystem::path directory, lengths, sizes;
};

/// What was read of it.
struct PlannedSet {
  std::vector<mm::data::SampleSize> sizes;
  std::unique_ptr<mm::data::Dataset> set;  ///< null for tables
  uint64_t enlarged = 0;                   ///< pictures of a table of sizes
};

struct PlanOutput {
  std::filesystem::path out;  ///< plan file; empty: none
  bool json = false;
};

/// Plans a bucketed set and prints what came out; an exit code.
int plan_buckets(const PlannedSet& read, const BucketFlags& flags,
                 mm::data::BucketReportOptions options, const PlanOutput& output);

}  // namespace mmshard
