#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/image/decode.h"

namespace mm::image {

/// A picture being decoded: RGB rows as stored, top to bottom. The one seam between formats and the
/// rest; a new format is a new RowReader. One thread; the file's bytes must outlive it.
class RowReader {
 public:
  virtual ~RowReader() = default;
  /// Writes the next `count` rows to `out`, [count, width, 3]; `count` is at most the rows left.
  virtual std::optional<Failure> read(uint8_t* out, int32_t count) = 0;
  /// Reads to the end of the file; fails for damage that shows only there, adds to `out.notes` and
  /// `out.damage`.
  virtual std::optional<Failure> finish(Decoded& out) = 0;
};

using OpenedReader = Result<std::unique_ptr<RowReader>>;
OpenedReader open_jpeg(std::span<const std::byte> file, const Header& header,
                       const DecodeOptions& options);
OpenedReader open_png(std::span<const std::byte> file, const Header& header,
                      const DecodeOptions& options);
OpenedReader open_webp(std::span<const std::byte> file, const Header& header,
                       const DecodeOptions& options);
OpenedReader open_gif(std::span<const std::byte> file, const Header& header,
                      const DecodeOptions& options);
/// By `header.format`, which has passed `probe`.
OpenedReader open_rows(std::span<const std::byte> file, const Header& header,
                       const DecodeOptions& options);

/// What the header says that a user may want to know: an ignored profile, more pictures.
void add_header_notes(const Header& header, std::vector<std::string>& notes);

}  // namespace mm::image
