#include "lib/dist/local_address.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "lib/base/error.h"
#include "lib/dist/backend_errors.h"

namespace mm::dist {

TEST_CASE("towards a loopback address we are reached by loopback") {
  CHECK(address_towards("127.0.0.1") == "127.0.0.1");
  CHECK(address_of_interface("lo") == "127.0.0.1");
}

TEST_CASE("this host knows itself, and not a documentation address (RFC 5737)") {
  CHECK(is_this_host("127.0.0.1"));
  CHECK(is_this_host("localhost"));
  CHECK_FALSE(is_this_host("192.0.2.1"));
}

TEST_CASE("an unknown interface lists those that exist, a name that does not resolve is named") {
  CHECK_THROWS_WITH_AS(address_of_interface("nosuch0"),
                       doctest::Contains("network interface \"nosuch0\""), UsageError);
  CHECK_THROWS_WITH_AS(address_of_interface("nosuch0"), doctest::Contains("lo"), UsageError);
  CHECK_THROWS_WITH_AS(address_towards("host name with blanks"),
                       doctest::Contains("\"host name with blanks\" does not resolve"), CommError);
}

TEST_CASE("a backend's reason is its first line, without the place in its source") {
  const auto reason = [](const char* text) { return reason_of(std::runtime_error(text)); };
  CHECK(reason("[/build/gloo/transport/tcp/pair.cc:553] Connection closed by peer") ==
        "Connection closed by peer");
  CHECK(reason("plain\nsecond line") == "plain");
  CHECK(reason("[not a source] text") == "[not a source] text");
  CHECK(reason("").empty());
}

}  // namespace mm::dist
