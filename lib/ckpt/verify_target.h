#pragma once
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/ckpt/target.h"
#include "lib/ckpt/value_scan.h"
#include "lib/ckpt/verify.h"

namespace mm::ckpt {

struct VerifyTargetOptions {
  VerifyOptions files;
  bool values = false;  ///< also count NaN, infinite values and BOOL bytes that are neither 0 nor 1
};

/// The verdict on one file, directory or checkpoint.
struct VerifiedItem {
  std::filesystem::path path;
  VerifyReport report;
  bool checksummed =
      false;  ///< the bytes were compared with stored checksums; foreign files have none
  ValueCounts values;
  std::vector<std::string> odd_tensors;  ///< lines of tensors with such values
};

/// Verifies what the target holds: a file or Hugging Face directory against the format's rules
/// (there are no checksums), a checkpoint against its manifest, a run's every checkpoint.
/// Left-overs of unfinished saves are notes.
std::vector<VerifiedItem> verify_target(const Target& target, const VerifyTargetOptions& options);

std::string verified_text(const std::vector<VerifiedItem>& items,
                          const VerifyTargetOptions& options);
/// {"schema": 1, "ok": bool, "items": [{"path", "ok", "problems", ...}]}.
Json verified_json(const std::vector<VerifiedItem>& items, const VerifyTargetOptions& options);
bool all_ok(const std::vector<VerifiedItem>& items);

}  // namespace mm::ckpt
