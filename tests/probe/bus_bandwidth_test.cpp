#include "lib/probe/bus_bandwidth.h"

#include <doctest/doctest.h>

using namespace mm::probe;

TEST_CASE("C56: factors and figures are nccl-tests' own") {
  constexpr double kGiB = 1 << 30;
  const auto bus = [](Collective c, int n, double bytes, double s) {
    return bandwidth(c, n, bytes, s).bus_gb_s;
  };
  CHECK(bandwidth(Collective::kAllReduce, 8, kGiB, 0.01).algorithm_gb_s ==
        doctest::Approx(107.3742).epsilon(1e-6));
  CHECK(bus(Collective::kAllReduce, 8, kGiB, 0.01) == doctest::Approx(187.9048).epsilon(1e-6));
  CHECK(bus(Collective::kAllGather, 8, kGiB, 0.01) == doctest::Approx(93.9524).epsilon(1e-6));
  CHECK(bus(Collective::kReduceScatter, 8, kGiB, 0.01) == doctest::Approx(93.9524).epsilon(1e-6));
  CHECK(bus(Collective::kAllToAll, 8, kGiB, 0.01) == doctest::Approx(93.9524).epsilon(1e-6));
  CHECK(bus(Collective::kAllReduce, 2, kGiB, 0.01) == doctest::Approx(107.3742).epsilon(1e-6));
  CHECK(bus(Collective::kAllGather, 2, kGiB, 0.01) == doctest::Approx(53.6871).epsilon(1e-6));
  const double quarter = kGiB / 4;
  CHECK(bandwidth(Collective::kAllReduce, 4, quarter, 0.002).algorithm_gb_s ==
        doctest::Approx(134.2177).epsilon(1e-6));
  CHECK(bus(Collective::kAllReduce, 4, quarter, 0.002) == doctest::Approx(201.3266).epsilon(1e-6));
  CHECK(bus(Collective::kAllGather, 4, quarter, 0.002) == doctest::Approx(100.6633).epsilon(1e-6));
  for (const Collective c : {Collective::kBroadcast, Collective::kReduce, Collective::kSendReceive})
    CHECK(bus_factor(c, 8) == 1);
}

TEST_CASE("bus bandwidth: words go there and back") {
  for (const std::string& text : collective_words()) CHECK(word(*collective_of(text)) == text);
  CHECK(collective_words().size() == 7);
  CHECK_FALSE(collective_of("allreduce"));
}

TEST_CASE("latency fit: a straight line is found, too few sizes are not fitted") {
  std::vector<std::pair<double, double>> points;
  for (double bytes = 1024; bytes < 1e9; bytes *= 4)
    points.emplace_back(bytes, 20e-6 + bytes / 5e9);
  const auto fit = fit_latency(points);
  REQUIRE(fit);
  CHECK(fit->latency_us == doctest::Approx(20).epsilon(1e-6));
  CHECK(fit->gb_s == doctest::Approx(5).epsilon(1e-6));
  CHECK_FALSE(fit_latency({{1024, 1e-3}}));
  CHECK_FALSE(fit_latency({{1024, 1e-3}, {1024, 2e-3}}));
  CHECK_FALSE(fit_latency({{1024, 2e-3}, {4096, 1e-3}}));
}
