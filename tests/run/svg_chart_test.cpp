#include "lib/run/svg_chart.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

using namespace mm::run;

TEST_CASE("round_ticks: 1, 2 or 5 times a power of ten, inside the range") {
  CHECK(round_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  const std::vector<double> ticks = round_ticks(0.13, 0.92, 4);
  REQUIRE(ticks.size() == 4);
  CHECK(ticks.front() == doctest::Approx(0.2));
}

TEST_CASE("draw_svg: empty, single-point and not-finite series are drawn without a not-a-number") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const Series& series :
       {Series{}, Series{"one", {1}, {2}}, Series{"gap", {1, 2, 3}, {1, nan, 3}},
        Series{"inf", {1, 2}, {inf, 1}}}) {
    const std::string svg = draw_svg({.title = "t", .series = {series}});
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf ") == std::string::npos);
    CHECK(svg.ends_with("</svg>"));
  }
}

TEST_CASE("draw_svg: a point alone is a dot, and points without a value do not hide others") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto path_of = [](const Series& series) {
    const std::string svg = draw_svg({.series = {series}, .width = 640});
    const size_t begin = svg.find("<path d='") + 9;
    return svg.substr(begin, svg.find('\'', begin) - begin);
  };
  const std::string alone = path_of({"alone", {1, 2, 3}, {nan, 2, nan}});
  CHECK(alone.starts_with("M"));
  CHECK(alone.ends_with("h0"));
  Series sparse{.name = "every fifth"};
  for (int i = 0; i < 5000; ++i) {
    sparse.x.push_back(i);
    sparse.y.push_back(i % 5 == 0 ? i : nan);
  }
  const std::string path = path_of(sparse);
  CHECK(std::count(path.begin(), path.end(), 'M') == 1);
  CHECK(std::count(path.begin(), path.end(), 'L') == 639);
}

TEST_CASE("draw_svg: long series are thinned, names are escaped") {
  Series series{.name = "<script>"};
  for (int i = 0; i < 100000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i % 7);
  }
  const std::string svg = draw_svg({.title = "a & b", .series = {series}});
  CHECK(svg.size() < 40000);
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK(svg.find("a &amp; b") != std::string::npos);
}
