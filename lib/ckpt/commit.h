#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/checkpoint_manifest.h"
#include "lib/ckpt/safetensors_writer.h"

namespace mm::ckpt {

/// What a rank saves of one tensor: the elements of `box`, packed. The parts of all ranks must tile
/// the tensor.
struct ShardTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> global_shape;
  ElementBox box;                               ///< empty: the whole tensor
  std::span<const std::byte> bytes;             ///< as in TensorSource
  std::function<void(const ByteSink&)> stream;  ///< as in TensorSource
};

/// What a rank wrote; goes to rank 0 as text.
struct ShardReport {
  FileRecord file;
  std::vector<TensorRecord> tensors;  ///< each with the pieces of this file; Piece::file is 0
};
std::string encode_report(const ShardReport& report);
/// Throws DataError beginning with `origin`.
ShardReport decode_report(std::string_view text, std::string_view origin);

/// Identifies one save to all its ranks. `save_id` is drawn by rank 0 (new_save_id) and sent to the
/// others.
struct SaveInfo {
  std::filesystem::path run_ckpt;  ///< RUN/ckpt
  uint64_t step = 0;
  std::string save_id;
  std::string previous_save_id;
  int rank = 0;
  int world_size = 1;
};

/// One save by the commit protocol. Each rank has its own writer; the caller moves reports and
/// barriers between ranks:
///
///     CheckpointWriter writer(info);
///     writer.begin();
///     ShardReport mine = writer.write_shard(tensors);          // durable when it returns
///     auto reports = gather_to_rank_0(encode_report(mine));    // this is the barrier
///     if (rank == 0) writer.commit(reports, state);            // durable when it returns
///
/// Order on disk: shards in step-N.tmp-<id>/ with fsync; manifest.json, fsync; rename to step-N/;
/// fsync of the parent; COMMIT, fsync; `latest`. A crash at any moment leaves the earlier commits
/// as they were, and this one whole or without COMMIT. Errors: IoError (space, device), DataError
/// (the parts do not make whole tensors). After an error call `abort` on every rank.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(SaveInfo info, FaultHook hook = {});

  /// Makes the temporary directory; any rank may come first.
  void begin();
  ShardReport write_shard(std::span<const ShardTensor> tensors);
  /// Rank 0, when all ranks have returned from write_shard. Returns the committed directory. A
  /// directory of the same step that is already there is moved aside, and found again if we die
  /// before COMMIT.
  std::filesystem::path commit(std::span<const ShardReport> reports, Json state);
  /// Removes what `begin` made, as far as it can; throws nothing.
  void abort() noexcept;

  const std::filesystem::path& temporary_directory() const { return temporary_; }

 private:
  void point(std::string_view name) const;
  void move_into_place(const std::filesystem::path& final_directory);

  SaveInfo info_;
  FaultHook hook_;
  std::filesystem::path temporary_;
};

/// The manifest of a save from its ranks' reports. Throws DataError if tensors disagree or are not
/// tiled.
Manifest merge_reports(const SaveInfo& info, std::span<const ShardReport> reports, Json state);

/// All points that hooks are called with while saving and in retention, in order.
std::span<const std::string_view> fault_points();

}  // namespace mm::ckpt
