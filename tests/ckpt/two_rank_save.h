#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "lib/ckpt/commit.h"

namespace mm::ckpt::test {

inline std::vector<std::byte> floats(std::vector<float> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline std::vector<std::byte> filled(size_t bytes, uint64_t seed) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>((seed * 31 + i * 7) & 0xFF);
  return out;
}

/// Saves a small model as two ranks would, rank after rank: "rows" [8, 4] cut by rows, "columns"
/// [4, 6] cut by columns, "big" U8 [1.5 MiB] and "scalar" [] on rank 0 only. Contents depend on the
/// step. Returns the committed directory.
inline std::filesystem::path save_two_ranks(const std::filesystem::path& run_ckpt, uint64_t step,
                                            const FaultHook& hook = {}) {
  const std::string id = new_save_id();
  std::vector<ShardReport> reports;
  for (int rank = 0; rank < 2; ++rank) {
    CheckpointWriter writer({run_ckpt, step, id, "", rank, 2}, hook);
    writer.begin();
    const auto rows = filled(64, step + static_cast<uint64_t>(rank)),
               columns = filled(48, step * 3 + static_cast<uint64_t>(rank)),
               big = filled(3 << 19, step), scalar = floats({static_cast<float>(step)});
    const uint64_t r = static_cast<uint64_t>(rank);
    std::vector<ShardTensor> tensors = {
        {"rows", DType::kF32, {8, 4}, {{4 * r, 0}, {4, 4}}, rows, {}},
        {"columns", DType::kF32, {4, 6}, {{0, 3 * r}, {4, 3}}, columns, {}}};
    if (rank == 0) {
      tensors.push_back({"big", DType::kU8, {3 << 19}, {}, big, {}});
      tensors.push_back({"scalar", DType::kF32, {}, {}, scalar, {}});
    }
    // Through text, as between processes.
    reports.push_back(decode_report(encode_report(writer.write_shard(tensors)), "report"));
  }
  CheckpointWriter writer({run_ckpt, step, id, "", 0, 2}, hook);
  return writer.commit(reports, {{"step", step}, {"schedule", {{"lr", 0.5}}}});
}

}  // namespace mm::ckpt::test
