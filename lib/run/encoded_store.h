#pragma once
#include "lib/data/sample_store.h"
#include "lib/run/encoded_set.h"

namespace mm::run {

/// A data set as a stage reads it whose rows are stored encoded. Rows that are absent from the
/// encoded set fail (kAbsent). Where latents are stored only texts are read: no picture is
/// looked at, whatever became of it, and a caption whose ids are not those that were encoded fails.
/// Nothing is owned.
class EncodedStore final : public data::SampleStore {
 public:
  /// Kind of failure: known since the set was encoded, so no news however often it is met.
  static constexpr const char* kAbsent = "absent";

  EncodedStore(const data::SampleStore& set, const EncodedSet& encoded)
      : set_(set), encoded_(encoded) {}

  uint64_t rows() const override { return set_.rows(); }
  std::vector<data::SampleSize> sizes() const override { return set_.sizes(); }
  std::string_view key(uint64_t row) const override { return set_.key(row); }
  data::PictureLayout pictures() const override { return set_.pictures(); }
  std::vector<data::BucketShape> buckets() const override { return set_.buckets(); }
  Result<data::Sample> read(uint64_t row) const override;
  std::vector<Result<data::Sample>> read_pack(std::span<const uint32_t> rows,
                                              data::PixelVector& pixels) const override;
  bool gives_pixels() const override { return !has_latents(&encoded_); }
  uint32_t file_of(uint64_t row) const override { return set_.file_of(row); }
  /// Copies of whole shards are worth their bytes only to those who read pictures.
  void expect(uint64_t first_step,
              const std::vector<std::vector<uint32_t>>& files_of_steps) const override;
  void reached(uint64_t step) const override { set_.reached(step); }

 private:
  Failure named(uint64_t row, const char* kind, const char* what) const;

  const data::SampleStore& set_;
  const EncodedSet& encoded_;
};

}  // namespace mm::run
