#include "lib/run/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lib/base/html.h"

namespace mm::run {
namespace {

constexpr std::array<const char*, 6> kColours{"#1f6feb", "#d1242f", "#1a7f37",
                                              "#9a6700", "#8250df", "#57606a"};
constexpr int kLeft = 64, kRight = 12, kTop = 30, kBottom = 40;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void close() {
    if (!(low <= high)) low = 0, high = 1;
    if (low == high) low -= 0.5, high += 0.5;
  }
  double position(double value) const { return (value - low) / (high - low); }
};

/// Maps data to pixels.
struct Frame {
  const Chart& chart;
  Range x, y;
  double value_y(double v) const { return chart.log_y ? std::log10(std::max(v, 1e-12)) : v; }
  double px(double v) const { return kLeft + x.position(v) * (chart.width - kLeft - kRight); }
  double py(double v) const {
    return chart.height - kBottom - y.position(value_y(v)) * (chart.height - kTop - kBottom);
  }
};

bool is_finite(const Series& series, size_t i) {
  return std::isfinite(series.x[i]) && std::isfinite(series.y[i]);
}

Series thin(const Series& full, size_t points) {
  if (full.x.size() <= points) return full;
  Series result{.name = full.name};
  for (size_t i = 0; i < points; ++i) {
    const size_t begin = i * full.x.size() / points, end = (i + 1) * full.x.size() / points;
    double x = 0, y = 0, count = 0;
    for (size_t k = begin; k < end; ++k) {
      if (is_finite(full, k)) x += full.x[k], y += full.y[k], ++count;
    }
    result.x.push_back(x / count);  // not a number where no point is finite: a gap
    result.y.push_back(y / count);
  }
  return result;
}

/// Lines of no length under points that stand alone: with round ends they are dots.
std::string path_of(const Frame& frame, const Series& series) {
  std::string path;
  size_t drawn = 0;  // points since the last gap
  const auto end_line = [&] {
    if (drawn == 1) path += "h0";
    drawn = 0;
  };
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!is_finite(series, i)) {
      end_line();
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", drawn++ > 0 ? "L" : "M", frame.px(series.x[i]),
                        frame.py(series.y[i]));
  }
  end_line();
  return path;
}

std::string axes(const Frame& frame) {
  const Chart& c = frame.chart;
  std::string out;
  for (double tick : round_ticks(frame.x.low, frame.x.high, 8)) {
    out += fmt::format(
        "<line x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}' class='grid'/><text x='{0:.1f}' y='{3}' "
        "class='tick' "
        "text-anchor='middle'>{4:g}</text>",
        frame.px(tick), kTop, c.height - kBottom, c.height - kBottom + 16, tick);
  }
  for (double tick : round_ticks(frame.y.low, frame.y.high, 5)) {
    const double shown = c.log_y ? std::pow(10.0, tick) : tick;
    out += fmt::format(
        "<line x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}' class='grid'/><text x='{3}' y='{4:.1f}' "
        "class='tick' "
        "text-anchor='end'>{5:.3g}</text>",
        kLeft, c.width - kRight, frame.py(shown), kLeft - 6, frame.py(shown) + 4, shown);
  }
  out += fmt::format("<text x='{}' y='16' class='title'>{}</text>", kLeft, html_escape(c.title));
  out += fmt::format("<text x='{}' y='{}' class='tick' text-anchor='end'>{}</text>",
                     c.width - kRight, c.height - 6, html_escape(c.x_label));
  out += fmt::format("<text x='6' y='16' class='tick'>{}</text>", html_escape(c.y_label));
  return out;
}

std::string legend(const Chart& chart) {
  std::string out;
  double x = chart.width - kRight;
  for (size_t i = chart.series.size(); i-- > 0;) {
    const std::string& name = chart.series[i].name;
    x -= 7.0 * static_cast<double>(name.size()) + 22;
    out += fmt::format(
        "<rect x='{:.0f}' y='8' width='10' height='10' fill='{}'/><text x='{:.0f}' y='17' "
        "class='tick'>{}</text>",
        x, kColours[i % kColours.size()], x + 14, html_escape(name));
  }
  return out;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  const double raw = (high - low) / std::max(1, count);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double step = raw / power > 5   ? 10 * power
                      : raw / power > 2 ? 5 * power
                      : raw / power > 1 ? 2 * power
                                        : power;
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
    ticks.push_back(i * step + 0.0);
  return ticks;
}

std::string draw_svg(const Chart& chart) {
  Frame frame{.chart = chart};
  for (const Series& series : chart.series) {
    for (double x : series.x) frame.x.include(x);
    for (double y : series.y) frame.y.include(std::isfinite(y) ? frame.value_y(y) : y);
  }
  frame.x.close();
  frame.y.close();
  std::string out = fmt::format("<svg viewBox='0 0 {0} {1}' width='{0}' height='{1}' role='img'>",
                                chart.width, chart.height);
  out += axes(frame);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series series = thin(chart.series[i], static_cast<size_t>(chart.width));
    out += fmt::format(
        "<path d='{}' fill='none' stroke='{}' stroke-width='1.5' "
        "stroke-linecap='round'/>",
        path_of(frame, series), kColours[i % kColours.size()]);
  }
  return out + legend(chart) + "</svg>";
}

}  // namespace mm::run
