#include "lib/data/data_url.h"

#include <doctest/doctest.h>

#include "lib/base/html.h"

using namespace mm::data;

TEST_CASE("base64: the vectors of RFC 4648, with and without padding, over lines") {
  for (const auto& [text, plain] :
       std::initializer_list<std::pair<const char*, const char*>>{{"", ""},
                                                                  {"Zg==", "f"},
                                                                  {"Zm8=", "fo"},
                                                                  {"Zm9v", "foo"},
                                                                  {"Zm9vYg==", "foob"},
                                                                  {"Zm9vYmE=", "fooba"},
                                                                  {"Zm9vYmFy", "foobar"},
                                                                  {"Zm9vYg", "foob"},
                                                                  {"Zm9v\r\n YmFy\n", "foobar"}}) {
    CHECK(decode_base64(text) == std::string(plain));
  }
  for (const char* text : {"Z", "Zm9v?", "Zg=", "Zg===", "Zg==Zg==", "=", "Zm9vYmFyZ", "\xff"})
    CHECK(!decode_base64(text));
}

TEST_CASE("base64: every byte value survives encoding and decoding") {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  for (size_t length = 250; length <= all.size(); ++length) {
    const std::string part = all.substr(0, length);
    CHECK(decode_base64(mm::base64(std::as_bytes(std::span(part)))) == part);
  }
}

TEST_CASE("data URL: only base 64 ones are read") {
  CHECK(decode_data_url("data:image/png;base64,Zm9v") == "foo");
  CHECK(decode_data_url("data:;base64,Zm9v") == "foo");
  for (const char* url : {"data:image/png,foo", "data:image/png;base64", "http://a/b", "Zm9v",
                          "data:image/png;base64,Zm9v!"}) {
    CHECK(!decode_data_url(url));
  }
}
