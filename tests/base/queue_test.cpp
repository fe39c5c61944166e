#include <doctest/doctest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "lib/base/bounded_queue.h"

TEST_CASE("BoundedQueue: first in, first out, close drains, then returns nothing") {
  mm::BoundedQueue<int> queue(3);
  CHECK(queue.push(1));
  CHECK(queue.push(2));
  CHECK(queue.size() == 2);
  queue.close();
  CHECK_FALSE(queue.push(3));
  CHECK(queue.pop() == 1);
  CHECK(queue.pop() == 2);
  CHECK_FALSE(queue.pop().has_value());
}

TEST_CASE("BoundedQueue: many producers and consumers move every item once") {
  mm::BoundedQueue<int> queue(2);
  constexpr int kEach = 500;
  std::vector<long> sums(3, 0);
  {
    std::vector<std::jthread> consumers;
    for (long& sum : sums) {
      consumers.emplace_back([&queue, &sum] {
        while (auto item = queue.pop()) sum += *item;
      });
    }
    {
      std::vector<std::jthread> producers;
      for (int p = 0; p < 3; ++p) {
        producers.emplace_back([&queue] {
          for (int i = 1; i <= kEach; ++i) queue.push(i);
        });
      }
    }
    queue.close();
  }
  CHECK(std::accumulate(sums.begin(), sums.end(), 0L) == 3L * kEach * (kEach + 1) / 2);
}

TEST_CASE("BoundedQueue: close wakes a producer that waits for room") {
  mm::BoundedQueue<int> queue(1);
  queue.push(1);
  bool pushed = true;
  {
    const std::jthread producer([&] { pushed = queue.push(2); });
    queue.close();
  }
  CHECK_FALSE(pushed);
}
