#include "lib/base/base64.h"

#include <doctest/doctest.h>

#include <span>

#include "lib/base/html.h"

using namespace mm;

TEST_CASE("base64: the examples of RFC 4648, with and without padding") {
  CHECK(decode_base64("") == "");
  CHECK(decode_base64("Zg==") == "f");
  CHECK(decode_base64("Zm8=") == "fo");
  CHECK(decode_base64("Zm8") == "fo");
  CHECK(decode_base64("Zm9v") == "foo");
  CHECK(decode_base64("Zm9vYmFy") == "foobar");
}

TEST_CASE("base64: bytes of any length there and back") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(decode_base64(base64(std::as_bytes(std::span(bytes)))) == bytes);
    bytes += static_cast<char>(i * 37);
  }
}

TEST_CASE("base64: other characters, wrong lengths and stray bits give nothing") {
  for (const char* bad :
       {"A", "AAAAA", "Zg=", "Z===", "Zm 9v", "Zm9v\n", "Zh==", "Zm9=", "=", "\xFF\xFF"})
    CHECK_FALSE(decode_base64(bad));
}
