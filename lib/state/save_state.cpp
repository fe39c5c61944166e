#include "lib/state/save_state.h"

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/retention.h"

namespace mm::state {
namespace {

/// Gathers "ok" or a failure from all ranks; all throw if any failed.
class Agreement {
 public:
  explicit Agreement(dist::Group& group) : group_(group) {}

  /// Runs `work` here and exchanges its text. A failure anywhere is everybody's.
  std::vector<std::string> run(const std::function<std::string()>& work) {
    std::string message;
    try {
      message = "+" + work();
    } catch (const Error& error) {
      message = std::string("-") + error.what();
    }
    std::vector<std::string> all = group_.all_gather_bytes(message);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].empty() || all[rank][0] != '+') {
        throw IoError("save failed on rank {}: {}", rank,
                      all[rank].empty() ? "no report" : all[rank].substr(1));
      }
      all[rank].erase(0, 1);
    }
    return all;
  }

 private:
  dist::Group& group_;
};

std::vector<ckpt::ShardTensor> own_share(const SaveRequest& request, int rank, int ranks) {
  const std::vector<int> writer = assign_writers(request.tensors, ranks);
  std::vector<ckpt::ShardTensor> share;
  for (size_t i = 0; i < writer.size(); ++i) {
    if (writer[i] != rank) continue;
    const StateTensor& t = request.tensors[i];
    const std::vector<uint64_t> shape(t.value.sizes().begin(), t.value.sizes().end());
    share.push_back({.name = t.name,
                     .dtype = disk_dtype(t.value),
                     .global_shape = shape,
                     .box = ckpt::whole_box(shape),
                     .bytes = tensor_bytes(t.value)});
  }
  return share;
}

void retain(const SaveRequest& request, const ckpt::FaultHook& hook) {
  const ckpt::RetentionResult result = ckpt::apply_retention(
      request.run_ckpt, {.keep_last = static_cast<uint64_t>(request.keep_last)}, hook);
  if (!result.held_back.empty())
    log::warn("state", "older checkpoints kept", {{"reason", result.held_back}});
}

}  // namespace

std::string save_state(dist::Group& group, const SaveRequest& request,
                       const ckpt::FaultHook& hook) {
  Agreement agreement(group);
  const std::string save_id =
      agreement.run([&] { return group.rank() == 0 ? ckpt::new_save_id() : std::string(); })[0];
  ckpt::CheckpointWriter writer({.run_ckpt = request.run_ckpt,
                                 .step = request.step,
                                 .save_id = save_id,
                                 .previous_save_id = request.previous_save_id,
                                 .rank = group.rank(),
                                 .world_size = group.size()},
                                hook);
  try {
    const std::vector<std::string> texts = agreement.run([&] {
      writer.begin();
      return ckpt::encode_report(
          writer.write_shard(own_share(request, group.rank(), group.size())));
    });
    agreement.run([&] {
      if (group.rank() != 0) return std::string();
      std::vector<ckpt::ShardReport> reports;
      for (size_t rank = 0; rank < texts.size(); ++rank)
        reports.push_back(ckpt::decode_report(texts[rank], fmt::format("report of rank {}", rank)));
      writer.commit(reports, request.state);
      retain(request, hook);
      return std::string();
    });
  } catch (const IoError&) {
    writer.abort();
    throw;
  }
  return save_id;
}

}  // namespace mm::state
