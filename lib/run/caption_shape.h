#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "lib/model/text_encoder.h"

namespace mm::run {

/// Where one of several text encoders' states lie in what they give of a caption together.
struct CaptionShare {
  int64_t row = 0, rows = 0;             ///< from row on; rows 0: to the end
  int64_t column = 0, width = 0;         ///< of each row
  int64_t pooled = 0, pooled_width = 0;  ///< of the pooled vector
  bool operator==(const CaptionShare&) const = default;
};

/// A share, and the chance that training leaves it out by itself.
struct EncoderDrop {
  CaptionShare share;
  double chance = 0;
};

/// What frozen text encoders give, from their config.json files alone.
struct CaptionShape {
  int64_t width = 0, pooled_width = 0;
  int64_t length = 0;                ///< rows of every caption; 0: as many as it has tokens
  double elements = 0;               ///< numbers of all weights
  double live = 0;                   ///< numbers a token has at its fullest while an encoder runs
  std::vector<CaptionShare> shares;  ///< of each encoder
};
/// `directories` and `padding` as CaptionEncoders takes them; throws as it does.
CaptionShape caption_shape(const std::vector<std::filesystem::path>& directories, int64_t padding);

/// Sizes of an encoder; nothing is allocated.
struct DeclaredEncoder {
  model::TextEncoder encoder;
  double elements = 0;  ///< numbers of its weights
};
/// Throws IoError, DataError for a directory without a config.json of a text encoder.
DeclaredEncoder declare_encoder(const std::filesystem::path& directory);

inline bool is_clip(const model::TextEncoder& encoder) {
  return encoder.family == model::TextFamily::kClip;
}

}  // namespace mm::run
