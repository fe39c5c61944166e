#pragma once
#include <string>
#include <vector>

namespace mm::run {

/// One line of a chart; points in drawing order. Not-finite ones leave a gap; one that stands alone
/// between gaps is drawn as a dot.
struct Series {
  std::string name;
  std::vector<double> x, y;
};

struct Chart {
  std::string title, x_label, y_label;
  std::vector<Series> series;
  bool log_y = false;
  int width = 640, height = 260;  ///< pixels
};

/// The chart as an inline SVG element: axes with round ticks, a legend, one colour a series. Long
/// series are thinned to about one point a pixel (means of equal slices), so that a report stays
/// small; points that are not finite count in no mean. No outside reference; names are escaped.
std::string draw_svg(const Chart& chart);

/// Round tick positions (1, 2 or 5 times a power of ten) that cover [low, high], about `count` of
/// them.
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace mm::run
