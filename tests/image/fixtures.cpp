#include "tests/image/fixtures.h"

#include <cstring>

#include "lib/base/file.h"
#include "lib/base/random.h"

namespace mm::image::testing {
namespace {

std::filesystem::path data_root() { return MM_TEST_DATA; }

}  // namespace

std::string fixture(const std::filesystem::path& name) { return read_file(data_root() / name); }

const Json& field_expectations() {
  static const Json expectations = read_json_file(data_root() / "field/expected.json");
  return expectations;
}

OracleTensors::OracleTensors() : file_(fixture("oracles/images/io.safetensors")) {
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file_.data(), sizeof(header_bytes));
  data_at_ = 8 + header_bytes;
  header_ = parse_json(std::string_view(file_).substr(8, header_bytes), "io.safetensors");
}

std::vector<int64_t> OracleTensors::shape(std::string_view name) const {
  return header_.at(std::string(name)).at("shape").get<std::vector<int64_t>>();
}

std::string_view OracleTensors::bytes(std::string_view name) const {
  const auto offsets = header_.at(std::string(name)).at("data_offsets").get<std::vector<size_t>>();
  return std::string_view(file_).substr(data_at_ + offsets[0], offsets[1] - offsets[0]);
}

Image OracleTensors::picture(std::string_view name) const {
  const auto dims = shape(name);
  const auto data = bytes(name);
  Image out(static_cast<int32_t>(dims[1]), static_cast<int32_t>(dims[0]));
  const size_t channels = dims.size() == 3 ? 3 : 1;
  for (size_t i = 0; i < out.rgb.size(); ++i) {
    out.rgb[i] = static_cast<uint8_t>(channels == 3 ? data[i] : data[i / 3]);
  }
  return out;
}

Image noise_picture(int32_t width, int32_t height, uint64_t seed) {
  const Philox random(seed);
  Image out(width, height);
  for (size_t i = 0; i < out.rgb.size(); ++i) {
    const uint32_t word = random.block(i / 16)[0];
    const size_t kind = (i / 999) % 3;  // noise, black and white, a ramp
    const uint32_t noise = random.block(i, 1)[1];
    out.rgb[i] = static_cast<uint8_t>(kind == 0   ? noise
                                      : kind == 1 ? (noise & 1) * 255
                                                  : word + i / 7);
  }
  return out;
}

int max_difference(const Image& a, const Image& b) {
  if (a.width != b.width || a.height != b.height) return 256;
  int largest = 0;
  for (size_t i = 0; i < a.rgb.size(); ++i)
    largest = std::max(largest, std::abs(a.rgb[i] - b.rgb[i]));
  return largest;
}

}  // namespace mm::image::testing
