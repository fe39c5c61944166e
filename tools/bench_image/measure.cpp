#include "tools/bench_image/measure.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/random.h"
#include "lib/image/encode.h"
#include "lib/image/prepare.h"
#include "lib/image/probe_file.h"
#include "lib/image/resize_kernels.h"
#include "lib/image/row_reader.h"

namespace mm::bench {
namespace {

namespace fs = std::filesystem;
using image::as_bytes;

void add(Pictures& pictures, std::string file, const std::string& path = {}) {
  const auto header = image::probe(as_bytes(file));
  if (!header || !image::decode(as_bytes(file)).ok()) return;
  pictures.megapixels += 1e-6 * header->stored.width * header->stored.height;
  pictures.files.push_back(std::move(file));
  if (!path.empty()) pictures.paths.push_back(path);
}

bool is_picture(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png" ||
         extension == ".webp" || extension == ".gif";
}

std::vector<fs::path> pictures_below(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() && is_picture(entry.path())) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void drop_rows(const std::string& file) {
  constexpr int32_t kRows = 16;
  const auto header = image::probe(as_bytes(file));
  auto reader = image::open_rows(as_bytes(file), *header, {});
  std::vector<uint8_t> rows(size_t{3} * kRows * header->stored.width);
  image::Decoded decoded;
  for (int32_t y = 0; y < header->stored.height; y += kRows) {
    if ((*reader)->read(rows.data(), std::min(kRows, header->stored.height - y)))
      throw DataError("a picture stopped decoding");
  }
  if ((*reader)->finish(decoded)) throw DataError("a picture stopped decoding");
}

// Processor time of this thread: what one core must spend, whatever else the machine does.
double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds(const std::function<void()>& body) {
  const double begin = seconds_now();
  body();
  return seconds_now() - begin;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

image::Image soft_shapes(image::Size size, uint64_t seed) {
  const Philox random(seed, "bench picture");
  image::Image out(size.width, size.height);
  std::vector<double> across(size.width), down(size.height);
  for (int32_t x = 0; x < size.width; ++x)
    across[x] = std::sin(x * (0.004 + 0.001 * static_cast<double>(seed % 5)));
  for (int32_t y = 0; y < size.height; ++y) down[y] = std::cos(y * 0.0063);
  for (int32_t y = 0; y < size.height; ++y) {
    for (int32_t x = 0; x < size.width; ++x) {
      const uint64_t pixel = static_cast<uint64_t>(y) * size.width + x;
      const uint32_t grain = random.block(pixel / 4)[pixel % 4];
      const bool edge = ((x / 97 + y / 61) & 7) == 0;
      for (int c = 0; c < 3; ++c) {
        const double v = 128 + 60 * across[x] * (c == 1 ? -1 : 1) + 40 * down[y] + (edge ? 30 : 0) +
                         static_cast<double>(grain >> (8 * c) & 15);
        out.row(y)[3 * x + c] = static_cast<uint8_t>(std::clamp(v, 0.0, 255.0));
      }
    }
  }
  return out;
}

}  // namespace

Pictures load_pictures(const std::vector<std::string>& paths) {
  Pictures pictures;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      add(pictures, read_file(path), path);
      continue;
    }
    for (const fs::path& file : pictures_below(path)) add(pictures, read_file(file), file.string());
  }
  if (pictures.files.empty())
    throw UsageError("no JPEG or PNG picture among the {} paths given", paths.size());
  return pictures;
}

Pictures make_pictures(int count, image::Size size) {
  Pictures pictures;
  for (int i = 0; i < count; ++i)
    add(pictures, image::encode_jpeg(soft_shapes(size, static_cast<uint64_t>(i)), {.quality = 90}));
  return pictures;
}

void save_pictures(const Pictures& pictures, const std::string& directory) {
  fs::create_directories(directory);
  for (size_t i = 0; i < pictures.files.size(); ++i) {
    write_file_atomic(fs::path(directory) / fmt::format("picture-{:02}.jpg", i), pictures.files[i]);
  }
}

double scan_rate(const Pictures& pictures, int rounds) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    times.push_back(seconds([&] {
      for (const std::string& path : pictures.paths) {
        if (!image::probe_file(path)) throw DataError("{}: its header changed", path);
      }
    }));
  }
  return static_cast<double>(pictures.paths.size()) / median(times);
}

std::vector<KernelRate> resize_rates(const Pictures& pictures,
                                     const image::Preparation& preparation, int rounds) {
  const image::Image picture = image::decode(as_bytes(pictures.files.front()))->image;
  const image::Size in{picture.width, picture.height};
  image::ResizePlan plan{.in = in, .filter = preparation.filter};
  plan.out = image::shortest_edge_size(in, preparation.side);
  plan.crop = image::centre_crop(plan.out, {preparation.side, preparation.side});
  std::vector<KernelRate> rates;
  for (const image::ResizeKernels* kernels : image::usable_kernels()) {
    plan.kernels = kernels;
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
      times.push_back(seconds([&] {
        image::RowResizer resizer(plan);
        resizer.push(picture.rgb.data(), picture.height);
        (void)resizer.finish();
      }));
    }
    rates.push_back({kernels->name, 1e-6 * in.width * in.height / median(times)});
  }
  return rates;
}

Timing measure(const Pictures& pictures, const image::Preparation& preparation, int rounds) {
  std::vector<double> decode, prepare, separate;
  const auto each = [&](const std::function<void(const std::string&)>& body) {
    return seconds([&] { std::for_each(pictures.files.begin(), pictures.files.end(), body); });
  };
  for (int round = 0; round < rounds; ++round) {
    decode.push_back(each(drop_rows));
    prepare.push_back(each([&](const std::string& file) {
      (void)image::decode_prepared(as_bytes(file), preparation);
    }));
    separate.push_back(each([&](const std::string& file) {
      (void)image::prepare(image::decode(as_bytes(file))->image, preparation);
    }));
  }
  return {median(decode), median(prepare), median(separate)};
}

}  // namespace mm::bench
