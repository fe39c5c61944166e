#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/ckpt/safetensors.h"
#include "lib/data/epoch_plan.h"
#include "lib/run/encoded_manifest.h"

namespace mm::run {

/// What is stored of a row, and the ids of the caption that it was made of: the columns of a unit's
/// "sums", XXH3-64 of the row's bytes in each.
enum class UnitPart { kLatents, kCaption, kPooled, kTokens };
inline constexpr size_t kUnitParts = 4;

/// Keys of a unit's metadata: settings_hash, and its number.
inline constexpr const char *kSettingsKey = "settings", *kUnitKey = "unit";

/// What to do about a unit that is damaged or of another set.
std::string mending(const std::filesystem::path& unit);

/// Where in a unit's file the numbers of its rows are. The file itself is not kept open. Const
/// members may be called from any thread; rows count from the unit's first.
class EncodedUnit {
 public:
  struct Expected {
    const EncodedSettings& settings;
    const std::string& hash;  ///< settings_hash
    uint64_t number = 0;
    uint64_t bytes = 0;                            ///< of the file
    std::span<const data::SampleSize> sizes = {};  ///< of the rows; empty: not known

    uint64_t first() const { return number * kUnitRows; }
    uint64_t rows() const { return std::min(kUnitRows, settings.rows - first()); }
  };
  /// Reads the header and the short tensors. Throws DataError naming file and what differs: other
  /// settings, another place in the set, rows or sizes of pictures than expected; IoError.
  static EncodedUnit open(const std::filesystem::path& path, const Expected& expected);

  const std::filesystem::path& path() const { return path_; }
  /// False for a row that could not be read when it was to be encoded.
  bool has(uint64_t row) const { return !rows_[row].absent; }
  uint64_t absent_rows() const;

  /// Of a row that is there: latents [C or 2C, h, w], caption [tokens, D], pooled [P], as fp32.
  /// `file`: the unit's. Throws DataError if the bytes are not what was written (sets of before
  /// sums are trusted), IoError.
  at::Tensor read(const File& file, uint64_t row, UnitPart part) const;
  /// Whether what is stored was made of a caption of these ids.
  bool made_of(const File& file, uint64_t row, std::span<const int32_t> tokens) const;

 private:
  struct Row {
    int64_t caption_end = 0;
    uint32_t index = 0;  ///< in its tensor of latents
    int16_t sizes = -1;  ///< which of them; -1: none
    bool absent = false;
  };
  /// Rows of a tensor along its first dimension.
  struct Piece {
    const ckpt::TensorEntry& entry;
    uint64_t begin = 0, end = 0;
  };
  void note_absent(const ckpt::SafetensorsFile& file, const Expected& expected);
  void place_latents(const ckpt::SafetensorsFile& file, const Expected& expected);
  void place_group(const ckpt::SafetensorsFile& file, const ckpt::TensorEntry& entry,
                   const Expected& expected);
  void place_captions(const ckpt::SafetensorsFile& file, const Expected& expected);
  void find_sums(const ckpt::SafetensorsFile& file);
  Piece piece(uint64_t row, UnitPart part) const;
  uint64_t sum(const File& file, uint64_t row, UnitPart part) const;

  std::filesystem::path path_;
  uint64_t first_ = 0, data_start_ = 0;
  std::vector<ckpt::TensorEntry> latents_;  ///< one for each size of pictures
  ckpt::TensorEntry captions_, pooled_, sums_;
  std::vector<Row> rows_;
};

}  // namespace mm::run
