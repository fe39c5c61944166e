#include "lib/base/html.h"

#include <doctest/doctest.h>

TEST_CASE("html_escape: markup, quotes and control characters lose their meaning") {
  CHECK(mm::html_escape("<a href=\"x\" b='y'>&</a>") ==
        "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;&lt;/a&gt;");
  CHECK(mm::html_escape("ü\n\t\x01") == "ü\n\t\xEF\xBF\xBD");
}

TEST_CASE("base64: the vectors of RFC 4648") {
  const auto encode = [](std::string_view text) {
    return mm::base64(std::as_bytes(std::span(text.data(), text.size())));
  };
  CHECK(encode("").empty());
  CHECK(encode("f") == "Zg==");
  CHECK(encode("fo") == "Zm8=");
  CHECK(encode("foo") == "Zm9v");
  CHECK(encode("foobar") == "Zm9vYmFy");
}
