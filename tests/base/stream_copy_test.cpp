#include "lib/base/stream_copy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "lib/base/crc32c_kernels.h"
#include "lib/base/hash.h"
#include "lib/base/random.h"

using namespace mm;

namespace {

std::vector<std::byte> random_bytes(size_t count) {
  const Philox random(3, "stream copy test");
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(random.below(i, 256));
  return bytes;
}

}  // namespace

TEST_CASE("stream_copy: equals memcpy for sizes and places around every border, touches no more") {
  const auto source = random_bytes(100'000);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{63}, kStreamBytes - 1, kStreamBytes,
                             kStreamBytes + 1, size_t{40'961}, size_t{65'536}, size_t{99'000}}) {
    for (const size_t from : {0u, 1u, 37u}) {
      for (const size_t to : {0u, 1u, 15u, 16u, 63u, 64u}) {
        CAPTURE(count);
        CAPTURE(to);
        const auto part = std::span(source).subspan(from, count);
        const uint32_t sum = detail::crc32c_portable(part, 7);
        const auto kernels = detail::usable_crc32c();
        for (size_t k = 0; k <= kernels.size(); ++k) {
          std::vector<std::byte> target(count + 200, std::byte{0xAA});
          if (k < kernels.size())
            CHECK(detail::stream_copy_by(kernels[k], part, target.data() + to, 7) == sum);
          else
            stream_copy(part, target.data() + to);
          CHECK(std::equal(part.begin(), part.end(), target.begin() + static_cast<ptrdiff_t>(to)));
          const auto untouched = [](std::byte b) { return b == std::byte{0xAA}; };
          CHECK(
              std::all_of(target.begin(), target.begin() + static_cast<ptrdiff_t>(to), untouched));
          CHECK(std::all_of(target.begin() + static_cast<ptrdiff_t>(to + count), target.end(),
                            untouched));
        }
      }
    }
  }
}
