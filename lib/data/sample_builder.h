#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/data/pack_options.h"
#include "lib/data/picture_packer.h"
#include "lib/data/record.h"
#include "lib/data/sample.h"
#include "lib/text/tokenizer.h"

namespace mm::data {

/// Sides in pixels; 0 without a picture.
struct PictureSides {
  int32_t width = 0, height = 0;
};

/// A sample ready for a shard.
struct BuiltSample {
  uint64_t row = 0;  ///< of the source
  std::string key;
  SampleSize size;
  int32_t width = 0, height = 0;           ///< of the largest stored tile; 0 without
  std::string payload;                     ///< encode_sample
  uint32_t repeat = 0;                     ///< of the record
  uint32_t source = 0;                     ///< likewise
  std::vector<uint64_t> picture_hashes;    ///< XXH3 of each picture's bytes as the source has them
  PictureSides original = {};              ///< of the picture of a bucketed set: upright, unscaled
  bool cut = false;                        ///< likewise: the caption was too long
  std::vector<LedgerEntry> warnings = {};  ///< damage that its pictures were decoded in spite of
};

/// Records to samples: reads and prepares pictures, renders and tokenises the conversation.
/// Thread-safe.
class SampleBuilder {
 public:
  /// `tokenizer` must outlive it. Throws UsageError if options are impossible together (checked on
  /// an empty sample).
  SampleBuilder(const PackOptions& options, const text::Tokenizer& tokenizer);

  /// The sample, or why there is none: kinds as LedgerEntry lists them; in a bucketed set also
  /// "no_label" and "unknown_label".
  std::variant<BuiltSample, LedgerEntry> build(const Record& record) const;

 private:
  /// What is known of a record's pictures; of a varied set the grids come before the text.
  struct Pictures {
    std::vector<CarriedPicture> files;
    std::vector<PictureGrid> grids;
    std::vector<PackedPicture> packed;
  };
  /// One picture in its bucket, with its caption's ids or its class.
  std::variant<BuiltSample, LedgerEntry> build_bucketed(const Record& record) const;
  Result<text::RenderedSample> render(const Record& record,
                                      std::span<const PictureGrid> grids) const;
  /// Content of the record's picture i as the source has it.
  Result<CarriedPicture> fetch(const Record& record, size_t i) const;
  /// Why a picture is bad, or nothing.
  std::optional<LedgerEntry> add_grids(const Record& record, Pictures& pictures) const;
  std::optional<LedgerEntry> add_pictures(const Record& record, size_t count,
                                          Pictures& pictures) const;

  const PackOptions& options_;
  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate template_;
  const int32_t picture_tokens_;
  std::optional<PicturePacker> packer_;  ///< none in a set of texts
};

}  // namespace mm::data
