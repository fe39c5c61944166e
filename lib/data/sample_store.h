#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/data/epoch_plan.h"
#include "lib/data/pixel_memory.h"
#include "lib/data/sample.h"

namespace mm::data {

/// What all pictures of a data set have in common. Sides 0 in a set of texts. In a set of varied
/// pictures (several tiles, or differing sizes) the sides are those of a square tile, or 0, and
/// each sample brings its grids.
struct PictureLayout {
  int32_t height = 0, width = 0;  ///< pixels
  int32_t patches = 0;            ///< placeholders a picture takes in the token stream
  int32_t image_token_id = -1;
  bool varied = false;
  /// A bucketed set: varied, one picture a sample, of which SampleSize::bucket tells the shape; no
  /// tokens stand for it.
  bool bucketed = false;

  /// Of a picture, or of a square tile; [height, width, 3].
  size_t pixel_bytes() const {
    return size_t{3} * static_cast<size_t>(height) * static_cast<size_t>(width);
  }
};

/// Where the loader gets samples from: a Dataset, or a double in tests. All calls are thread-safe.
class SampleStore {
 public:
  virtual ~SampleStore() = default;
  virtual uint64_t rows() const = 0;
  /// Sizes in row order, what the plan is made of.
  virtual std::vector<SampleSize> sizes() const = 0;
  virtual std::string_view key(uint64_t row) const = 0;
  virtual PictureLayout pictures() const = 0;
  /// Shapes of a bucketed set, in the order of its table; else none.
  virtual std::vector<BucketShape> buckets() const { return {}; }
  /// One contiguous read. A Failure, with kind and a line that names the place, when the stored
  /// bytes are damaged; then the caller keeps the sample's planned sizes and gives it weight 0.
  virtual Result<Sample> read(uint64_t row) const = 0;
  /// Several rows in their order, those that lie side by side in one read. Their pixels are
  /// appended to `pixels` one sample after another and not given in the samples; a row that failed
  /// adds none. Throws IoError.
  virtual std::vector<Result<Sample>> read_pack(std::span<const uint32_t> rows,
                                                PixelVector& pixels) const;
  /// The same without pixels, for those who have something in their place: no picture is decoded,
  /// and damage to it need not be noticed. A caption's ids are such as the tokenizer has, as many
  /// as the index says, but not compared with a checksum.
  virtual std::vector<Result<Sample>> read_texts(std::span<const uint32_t> rows) const;
  /// False: read_pack leaves pixels out too.
  virtual bool gives_pixels() const { return true; }

  /// Number of the file that holds a row.
  virtual uint32_t file_of(uint64_t) const { return 0; }
  /// Foretells which files will be read in steps [first_step, first_step + size), so that a cache
  /// can fetch ahead; replaces what was foretold of those and later steps.
  virtual void expect(uint64_t /*first_step*/,
                      const std::vector<std::vector<uint32_t>>& /*files_of_steps*/) const {}
  /// Steps before `step` will not be read any more.
  virtual void reached(uint64_t /*step*/) const {}
};

}  // namespace mm::data
