#include "lib/run/data_access.h"

#include <doctest/doctest.h>

#include <thread>

#include "lib/base/error.h"
#include "lib/dist/thread_group.h"

using namespace mm::run;
using doctest::Contains;

TEST_CASE("cache tiers: memory before disk, each only when the recipe wants it") {
  Recipe recipe;
  CHECK(cache_tiers(recipe).empty());
  recipe.cache_dir = "/local/cache";
  recipe.cache_bytes = 1000;
  REQUIRE(cache_tiers(recipe).size() == 1);
  CHECK(cache_tiers(recipe)[0].directory == "/local/cache");
  recipe.cache_memory_bytes = 10;
  REQUIRE(cache_tiers(recipe).size() == 2);
  CHECK(cache_tiers(recipe)[0].directory.string().starts_with("/dev/shm/mmkit-cache-"));
  CHECK(cache_tiers(recipe)[0].bytes == 10);
  CHECK(cache_tiers(recipe)[1].bytes == 1000);
}

TEST_CASE("same data: all ranks are told, in one line, which ranks opened another data set") {
  const auto groups = mm::dist::make_thread_groups(3, {.name = "control"});
  const std::string one(32, '1'), two(32, '2');
  const std::vector<std::string> second_set = {one, two, one};
  std::vector<std::string> messages(3);
  std::vector<std::thread> ranks;
  for (size_t rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      check_same_data(*groups[rank], {{"sets/a", one}, {"sets/a", one}});
      try {
        check_same_data(*groups[rank], {{"sets/a", one}, {"sets/b", second_set[rank]}});
      } catch (const mm::DataError& error) {
        messages[rank] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::string& message : messages) {
    CHECK(message.find("sets/b: not the same data set on all ranks") == 0);
    CHECK(message.find("ranks 0, 2 11111111; rank 1 22222222") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
}
