#include "lib/data/pack_shards.h"

#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/thread_pool.h"
#include "lib/data/json_fields.h"

namespace mm::data {
namespace {

/// The shard as its note describes it, if the note is of this plan and the file has its size.
std::optional<ShardEntry> read_note(const PackWorkspace& workspace, const ShardPlan& plan) {
  const auto path = workspace.note_path(plan.file);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  const Json json = read_json_file(path);
  const JsonFields note(json, path.string());
  if (note.integer<uint64_t>("plan_hash") != plan.plan_hash) return std::nullopt;
  const auto bytes = std::filesystem::file_size(workspace.set() / plan.file, error);
  if (error || bytes != plan.bytes) return std::nullopt;
  return ShardEntry{{plan.file, bytes, note.text("xxh3_128")}, plan.end - plan.begin};
}

/// The shards of one task.
class ShardWork {
 public:
  ShardWork(const ShardInput& input, const std::vector<ShardPlan>& plans, const PackRun& run,
            PackWorkspace& workspace)
      : input_(input), plans_(plans), run_(run), workspace_(workspace), entries_(plans.size()) {}

  std::vector<ShardEntry> all() {
    const auto mine = [&](size_t i) {
      return static_cast<int>(i % static_cast<size_t>(run_.share.tasks)) == run_.share.task;
    };
    pass([&](size_t i) { return mine(i); });
    while (missing() > 0) {
      pass([](size_t) { return true; });
      poll(
          "shards of other tasks", [&] { return missing(); }, [&] { return look(); });
    }
    std::vector<ShardEntry> result;
    for (auto& entry : entries_) result.push_back(std::move(*entry));
    return result;
  }

 private:
  template <typename Wanted>
  void pass(const Wanted& wanted) {
    parallel_for(plans_.size(), run_.threads, [&](size_t i) {
      if (entries_[i] || !wanted(i)) return;
      entries_[i] = read_note(workspace_, plans_[i]);
      if (!entries_[i] && workspace_.board().claim(plans_[i].file)) write(i);
    });
  }

  void write(size_t i) {
    const ShardPlan& plan = plans_[i];
    TaskBoard& board = workspace_.board();
    entries_[i] = write_shard(workspace_.set() / plan.file, board.aside(plan.file), plan, input_,
                              [&](uint32_t unit) { return workspace_.unit_path(unit); });
    const Json note = {{"plan_hash", plan.plan_hash}, {"xxh3_128", entries_[i]->file.xxh3_128}};
    board.write(workspace_.note_path(plan.file), note.dump() + "\n");
  }

  uint64_t missing() const {
    uint64_t count = 0;
    for (const auto& entry : entries_) count += !entry.has_value();
    return count;
  }

  /// True when another pass has work to do or nothing is missing.
  bool look() {
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (entries_[i]) continue;
      entries_[i] = read_note(workspace_, plans_[i]);
      if (!entries_[i] && workspace_.board().is_free(plans_[i].file)) return true;
    }
    if (workspace_.published()) throw IoError("the set was finished by other tasks");
    return missing() == 0;
  }

  const ShardInput& input_;
  const std::vector<ShardPlan>& plans_;
  const PackRun& run_;
  PackWorkspace& workspace_;
  std::vector<std::optional<ShardEntry>> entries_;
};

}  // namespace

std::vector<ShardEntry> pack_shards(const ShardInput& input, const std::vector<ShardPlan>& plans,
                                    const PackRun& run, PackWorkspace& workspace) {
  return ShardWork(input, plans, run, workspace).all();
}

}  // namespace mm::data
