#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "lib/run/import_context.h"

namespace mm::run::detail {

/// Every leaf of a DeepSpeed file as a flag: {"zero_optimization": {"stage": 3}} gives the key
/// "deepspeed.zero_optimization.stage" with value 3. Throws DataError for what is not JSON, IoError
/// if it cannot be read.
std::vector<ImportFlag> read_deepspeed(const std::filesystem::path& file);

/// Finds and adds the file that --deepspeed (or the user) names; claims --deepspeed. A file that is
/// nowhere is reported, not an error: the script may be read on another machine.
void add_deepspeed(ImportContext& context, const std::filesystem::path& script);

/// Compares what the file says with the trainer's arguments, which "auto" values follow, and claims
/// its keys. `per_device`, `accumulation`, `world`: of the run, 0 if unknown.
struct DeepspeedBatch {
  int64_t per_device = 0, accumulation = 0, world = 0;
};
void map_deepspeed(ImportContext& context, const DeepspeedBatch& batch);

/// The value of a key of the file; nothing if it is absent or "auto".
std::optional<double> deepspeed_number(ImportContext& context, std::string_view key);
bool deepspeed_truth(ImportContext& context, std::string_view key);

}  // namespace mm::run::detail
