#include "lib/base/random_hex.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <vector>

#include "lib/base/error.h"

namespace mm {

std::string random_hex(size_t bytes) {
  MM_CHECK(bytes <= 256, "{} bytes", bytes);
  std::vector<unsigned char> raw(bytes);
  const ssize_t got = ::getrandom(raw.data(), raw.size(), 0);
  if (got != static_cast<ssize_t>(bytes)) throw IoError("the system gives no random bytes");
  std::string text;
  for (const unsigned char byte : raw) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace mm
