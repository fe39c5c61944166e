#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace mm::image {

/// Reads numbers from bytes that did not come from us: every read is checked, out of range gives 0
/// and `ok` goes false.
class ByteView {
 public:
  explicit ByteView(std::span<const std::byte> bytes, bool little_endian = false)
      : bytes_(bytes), little_endian_(little_endian) {}
  size_t size() const { return bytes_.size(); }
  bool ok() const { return ok_; }
  uint32_t u8(size_t at) { return number(at, 1); }
  uint32_t u16(size_t at) { return number(at, 2); }
  uint32_t u32(size_t at) { return number(at, 4); }
  bool starts_with(size_t at, std::string_view magic) const {
    return at <= bytes_.size() && magic.size() <= bytes_.size() - at &&
           std::memcmp(bytes_.data() + at, magic.data(), magic.size()) == 0;
  }
  /// Clipped to what is there.
  std::span<const std::byte> slice(size_t at, size_t count) const {
    if (at >= bytes_.size()) return {};
    return bytes_.subspan(at, count < bytes_.size() - at ? count : bytes_.size() - at);
  }

 private:
  uint32_t number(size_t at, size_t count) {
    if (at > bytes_.size() || count > bytes_.size() - at) {
      ok_ = false;
      return 0;
    }
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t from = little_endian_ ? count - 1 - i : i;
      value = value << 8 | std::to_integer<uint32_t>(bytes_[at + from]);
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  bool little_endian_;
  bool ok_ = true;
};

}  // namespace mm::image
