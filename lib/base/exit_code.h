#pragma once

namespace mm {

/// Exit status of every mmkit tool; the one table that batch scripts may rely on
/// (docs/operations.md).
enum class ExitCode : int {
  kDone = 0,
  kDiffers = 1,         ///< a comparison differs: prove, diff, mm_oracle
  kUsage = 2,           ///< flags or recipe
  kDataInvalid = 65,    ///< data or checkpoint invalid, nothing valid left
  kUnhealthy = 69,      ///< node or device unhealthy
  kInternal = 70,       ///< our bug
  kStorage = 74,        ///< storage error past retries
  kSavedRunAgain = 75,  ///< saved on request; start again to go on
  kPeerLost = 76,       ///< a rank or the network was lost
  kNumerical = 79,      ///< NaN, Inf or divergence that persisted
  kDoNotRestart = 93,   ///< same fault again without progress
  kOwnTimeLimit = 124,  ///< a probe's own limit
};

}  // namespace mm
