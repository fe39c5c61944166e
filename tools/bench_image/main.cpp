// Prints one table; nothing is asserted by time. tools/peers/bench_pillow.py measures Pillow on the
// same files.
#include <fmt/format.h>
#include <jpeglib.h>  // needs <cstdio> before it
#include <png.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "lib/base/error.h"
#include "tools/bench_image/measure.h"

namespace {

#define MM_TEXT_OF(x) #x
#define MM_TEXT(x) MM_TEXT_OF(x)

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

struct Arguments {
  std::vector<std::string> paths;
  std::string save;
  std::string geometry = "crop";
  int side = 336, rounds = 7, count = 6, width = 4000, height = 3000;
};

void print(const Arguments& arguments, const mm::bench::Pictures& pictures,
           const mm::bench::Timing& t) {
  const double n = static_cast<double>(pictures.files.size());
  fmt::print(
      "{}, processor time of 1 thread; libjpeg-turbo {}, libpng {}; {} pictures, {:.2f} megapixels "
      "on average\n",
      cpu_name(), MM_TEXT(LIBJPEG_TURBO_VERSION), PNG_LIBPNG_VER_STRING, n,
      pictures.megapixels / n);
  fmt::print("to {0} x {0}, bicubic, {1}; medians of {2} interleaved rounds\n\n", arguments.side,
             arguments.geometry, arguments.rounds);
  fmt::print("{:<44} {:>12} {:>12} {:>10}\n", "", "images/s", "megapixels/s", "of limit");
  const auto row = [&](const char* name, double s) {
    fmt::print("{:<44} {:>12.1f} {:>12.1f} {:>10.2f}\n", name, n / s, pictures.megapixels / s,
               t.decode_s / s);
  };
  row("decode only, rows dropped (the limit)", t.decode_s);
  row("decode + exact resize (decode_prepared)", t.prepare_s);
  row("decode, then exact resize", t.separate_s);
}

int run(int argc, char** argv) {
  Arguments a;
  CLI::App app("Pictures per second and core: decode + exact resize beside decode alone.");
  app.add_option("paths", a.paths, "pictures, or folders of them; none: JPEG files made here");
  app.add_option("--save", a.save, "folder to write the made pictures to, for a peer's bench");
  app.add_option("--geometry", a.geometry, "crop, pad or squash")->capture_default_str();
  app.add_option("--side", a.side, "pixels of the result's side")->capture_default_str();
  app.add_option("--rounds", a.rounds, "rounds of which the median counts")->capture_default_str();
  app.add_option("--count", a.count, "pictures to make")->capture_default_str();
  app.add_option("--width", a.width, "of made pictures, in pixels")->capture_default_str();
  app.add_option("--height", a.height, "of made pictures, in pixels")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto geometry = mm::image::geometry_from_name(a.geometry);
  if (!geometry || a.side < 1 || a.rounds < 1 || a.count < 1)
    throw mm::UsageError("bench_image: a value is out of range; see --help");
  const auto pictures = a.paths.empty() ? mm::bench::make_pictures(a.count, {a.width, a.height})
                                        : mm::bench::load_pictures(a.paths);
  if (!a.save.empty()) mm::bench::save_pictures(pictures, a.save);
  if (!pictures.paths.empty())
    fmt::print("header scan of {} files: {:.0f} files/s\n", pictures.paths.size(),
               mm::bench::scan_rate(pictures, a.rounds));
  for (const auto& [name, rate] : mm::bench::resize_rates(pictures, {.side = a.side}, a.rounds))
    fmt::print("resize in memory, {}: {:.0f} megapixels/s\n", name, rate);
  print(a, pictures,
        mm::bench::measure(pictures, {.geometry = *geometry, .side = a.side}, a.rounds));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const mm::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return static_cast<int>(e.exit_code());
  }
}
