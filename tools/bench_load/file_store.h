#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/data/sample_store.h"

namespace mm::bench {

/// Pictures of a folder as they lie there, `repeat` times: a read opens the file, decodes, resizes
/// and crops it. What a loader without packing does, behind the same Loader.
class FileStore final : public data::SampleStore {
 public:
  FileStore(const std::filesystem::path& folder, int32_t side, int repeat);
  uint64_t rows() const override { return pictures_.size(); }
  std::vector<data::SampleSize> sizes() const override;
  std::string_view key(uint64_t row) const override { return pictures_[row].native(); }
  data::PictureLayout pictures() const override { return {side_, side_, 1, 1}; }
  Result<data::Sample> read(uint64_t row) const override;
  const std::vector<std::filesystem::path>& files() const { return pictures_; }

 private:
  std::vector<std::filesystem::path> pictures_;
  int32_t side_;
};

}  // namespace mm::bench
