#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "lib/base/file.h"

namespace mm::run {

/// Appends scalars to a TensorBoard event file: TFRecord framing (u64 length, masked CRC-32C of it,
/// payload, masked CRC-32C) around `tensorflow.Event` protocol buffers, of which only wall_time,
/// step, file_version, session starts, simple_value and image summaries are written. One writer a
/// run (rank 0). A resumed run opens a new file; TensorBoard joins the files of a directory by
/// step.
class TensorboardWriter {
 public:
  /// Creates `directory`/events.out.tfevents.<seconds>.<host>. Throws IoError.
  explicit TensorboardWriter(const std::filesystem::path& directory);
  /// A session begins with `step`: TensorBoard drops what earlier files hold of it and later steps.
  void start_at(int64_t step);
  void scalar(std::string_view tag, double value, int64_t step);
  /// An RGB picture as a PNG file.
  struct Png {
    int32_t width = 0, height = 0;
    std::string_view file;
  };
  void image(std::string_view tag, const Png& picture, int64_t step);

 private:
  void summary(std::string_view value, int64_t step);
  void record(std::string_view event);
  File file_;
};

}  // namespace mm::run
