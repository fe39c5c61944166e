#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/image/image.h"

namespace mm::image::testing {

/// A file below tests/, as bytes.
std::string fixture(const std::filesystem::path& name);

/// field/expected.json: outcome, size and pixel values of every field picture.
const Json& field_expectations();

/// Tensors of oracles/images/io.safetensors; a minimal reader, so that the picture tests need no
/// other module.
class OracleTensors {
 public:
  OracleTensors();
  bool has(std::string_view name) const { return header_.contains(name); }
  std::vector<int64_t> shape(std::string_view name) const;
  std::string_view bytes(std::string_view name) const;
  /// u8 [height, width, 3], or [height, width] repeated to three channels.
  Image picture(std::string_view name) const;

 private:
  std::string file_;
  Json header_;
  size_t data_at_ = 0;
};

/// Deterministic noise of 8-bit values with smooth and flat areas.
Image noise_picture(int32_t width, int32_t height, uint64_t seed);

/// Largest difference of two pictures of one size; 256 if the sizes differ.
int max_difference(const Image& a, const Image& b);

}  // namespace mm::image::testing
