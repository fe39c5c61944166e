#include <ATen/ATen.h>
#include <png.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/image/decode.h"
#include "lib/image/geometry.h"
#include "lib/image/normalise.h"
#include "lib/image/tiling.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/kinds.h"

namespace mm::oracle {
namespace {

using image::Image;

constexpr double kNormalisedTolerance = 1e-6;
constexpr int64_t kMaxSide = 16384;

[[noreturn]] void refuse(const std::string& name, const std::string& expected) {
  throw DataError("io.safetensors: {}: expected {}", name, expected);
}

// [h, w] or [h, w, channels] bytes.
at::Tensor pixels(Folder& folder, const std::string& name) {
  at::Tensor x = folder.tensor(name);
  if (x.dim() == 2) x = x.unsqueeze(2);
  const bool good = x.scalar_type() == at::kByte && x.dim() == 3 && x.numel() > 0 &&
                    x.size(0) <= kMaxSide && x.size(1) <= kMaxSide &&
                    (x.size(2) == 1 || x.size(2) == 3 || x.size(2) == 4);
  if (!good) refuse(name, "bytes [height, width] or [height, width, 1, 3 or 4]");
  return x;
}

Image to_image(const at::Tensor& x) {
  const at::Tensor rgb = (x.size(2) == 1 ? x.expand({x.size(0), x.size(1), 3}) : x).contiguous();
  Image image(static_cast<int32_t>(x.size(1)), static_cast<int32_t>(x.size(0)));
  std::copy_n(rgb.const_data_ptr<uint8_t>(), image.rgb.size(), image.rgb.begin());
  return image;
}

// Transparent pixels go the way of a user's: through a PNG file and the decoder.
Image over_white(const at::Tensor& rgba, const std::string& name) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(rgba.size(1));
  header.height = static_cast<png_uint_32>(rgba.size(0));
  header.format = PNG_FORMAT_RGBA;
  const at::Tensor bytes = rgba.contiguous();
  png_alloc_size_t size = 0;
  const auto write = [&](void* to) {
    return png_image_write_to_memory(&header, to, &size, 0, bytes.const_data_ptr(), 0, nullptr) !=
           0;
  };
  if (!write(nullptr)) throw InternalError("{}: PNG: {}", name, header.message);
  std::string file(size, '\0');
  if (!write(file.data())) throw InternalError("{}: PNG: {}", name, header.message);
  auto decoded = image::decode(image::as_bytes(file));
  if (!decoded.ok()) throw InternalError("{}: {}", name, decoded.failure().message);
  return std::move(decoded->image);
}

// Exact; the note counts the bytes that differ.
void check_picture(Folder& folder, Report& report, const std::string& name, const Image& got) {
  const Image want = to_image(pixels(folder, name));
  int64_t differing = 0;
  const bool same_size = got.width == want.width && got.height == want.height;
  for (size_t i = 0; same_size && i < want.rgb.size(); ++i) differing += got.rgb[i] != want.rgb[i];
  report.exact(name, got == want,
               same_size ? fmt::format("{} of {} bytes differ", differing, want.rgb.size())
                         : "another size");
}

// The number behind `prefix`, if that is all there is: "crop336" -> 336.
std::optional<int32_t> side_of(std::string_view word, std::string_view prefix,
                               std::string_view suffix = "") {
  if (!word.starts_with(prefix) || !word.ends_with(suffix)) return std::nullopt;
  word.remove_prefix(prefix.size());
  word.remove_suffix(suffix.size());
  int32_t side = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), side);
  if (error != std::errc() || end != word.data() + word.size() || side < 1 || side > kMaxSide)
    return std::nullopt;
  return side;
}

at::Tensor normalised(const Image& picture, int32_t side) {
  const auto values = image::normalise(image::prepare(picture, {.side = side}));
  return at::tensor(values, at::kFloat).view({3, side, side});
}

void check_normalised(Folder& folder, Report& report, const std::string& key, const Image& picture,
                      int32_t side) {
  const at::Tensor got = normalised(picture, side).slice(1, 0, side, 16).slice(2, 0, side, 16);
  const at::Tensor want = folder.tensor(key);
  const double error =
      got.sizes() == want.sizes() ? (got - want).abs().max().item<double>() : INFINITY;
  report.number(key, error, kNormalisedTolerance, "abs");
}

// "lanczos_97x48": a plain resize to width 97, height 48.
bool check_plain_resize(Folder& folder, Report& report, const std::string& key,
                        std::string_view word, const Image& picture) {
  const size_t bar = word.find('_'),
               cross = word.find('x', bar == std::string_view::npos ? 0 : bar);
  if (bar == std::string_view::npos || cross == std::string_view::npos) return false;
  const auto filter = image::filter_from_name(word.substr(0, bar));
  const auto width = side_of(word.substr(bar + 1, cross - bar - 1), ""),
             height = side_of(word.substr(cross + 1), "");
  if (!filter || !width || !height) return false;
  check_picture(folder, report, key, image::resize(picture, {*width, *height}, *filter));
  return true;
}

std::vector<image::Size> grid_points(Folder& folder, const std::string& path) {
  std::vector<image::Size> points;
  const Json list = folder.take(path);
  for (const Json& hw : list) {
    const bool pair = hw.is_array() && hw.size() == 2 && hw[0].is_number_integer() &&
                      hw[1].is_number_integer() && hw[0] > 0 && hw[1] > 0 && hw[0] <= kMaxSide &&
                      hw[1] <= kMaxSide;
    if (!pair) throw DataError("expected.json: {}: expected pairs of sides", path);
    points.push_back({hw[1].get<int32_t>(), hw[0].get<int32_t>()});
  }
  if (points.empty()) throw DataError("expected.json: {}: expected at least one grid", path);
  return points;
}

bool equals_hw(const std::vector<double>& hw, image::Size size) {
  return hw == std::vector<double>{double(size.height), double(size.width)};
}

// Of the folder's "anyres" or "anyres_tiles"; the patch matters for token counts only.
image::Preparation anyres_preparation(Folder& folder, const std::string& path) {
  image::Preparation p{.geometry = image::Geometry::kAnyRes};
  p.side = static_cast<int32_t>(folder.number(path + "/tile"));
  if (folder.has(path + "/patch")) p.patch = static_cast<int32_t>(folder.number(path + "/patch"));
  if (p.side < 1 || p.side > kMaxSide || p.patch < 1 || p.patch > p.side)
    throw DataError("expected.json: {}: tile and patch are no sizes", path);
  p.grid_points = grid_points(folder, path + "/pinpoints_hw");
  return p;
}

// [tiles, height, width, 3]: the whole first, then the grid row by row.
void check_tiles(Folder& folder, Report& report, const std::string& key, const std::string& name,
                 const Image& picture) {
  const auto p = anyres_preparation(folder, "anyres_tiles");
  const at::Tensor want = folder.tensor(key);
  if (want.dim() != 4 || want.scalar_type() != at::kByte || want.size(3) != 3)
    refuse(key, "bytes [tiles, height, width, 3]");
  const image::Size in{picture.width, picture.height};
  const image::PictureShape shape = image::shape_of(in, p);
  const std::string path = "anyres_tiles/pictures/" + name;
  if (folder.has(path)) {
    report.exact(path + "/best_hw",
                 equals_hw(folder.numbers(path + "/best_hw"), image::best_grid(in, p.grid_points)),
                 "another grid");
    report.exact(path + "/tiles", folder.number(path + "/tiles") == shape.tiles,
                 fmt::format("{} here", shape.tiles));
  }
  const Image got = image::prepare_tiles(picture, p);
  const at::Tensor stacked = want.reshape({-1, want.size(2), 3});
  report.exact(key, got == to_image(stacked), "bytes differ");
}

void check_token_counts(Folder& folder, Report& report) {
  if (!folder.has("anyres")) return;
  const auto p = anyres_preparation(folder, "anyres");
  const Json cases = folder.take("anyres/cases");
  for (const Json& c : cases) {
    const auto hw = c.at("hw").get<std::vector<int32_t>>();
    if (hw.size() != 2 || hw[0] < 1 || hw[1] < 1)
      throw DataError("expected.json: anyres/cases: hw is no size");
    const image::Size in{hw[1], hw[0]};
    const std::string path = fmt::format("anyres/cases/{}x{}", hw[0], hw[1]);
    report.exact(
        path + "/best_hw",
        equals_hw(c.at("best_hw").get<std::vector<double>>(), image::best_grid(in, p.grid_points)),
        "another grid");
    const int32_t tokens = image::shape_of(in, p).tokens;
    report.exact(path + "/tokens", c.at("tokens").get<int32_t>() == tokens,
                 fmt::format("{} here", tokens));
  }
}

void check_tensors(Folder& folder, Report& report, const std::string& name, const Image& picture) {
  for (const std::string& key : folder.tensor_names(name + "/")) {
    const std::string word = key.substr(name.size() + 1);
    if (const auto side = side_of(word, "crop")) {
      check_picture(folder, report, key, image::prepare(picture, {.side = *side}));
    } else if (const auto padded = side_of(word, "pad")) {
      check_picture(folder, report, key,
                    image::prepare(picture, {.geometry = image::Geometry::kPad, .side = *padded}));
    } else if (const auto every16 = side_of(word, "normalised", "_every16")) {
      check_normalised(folder, report, key, picture, *every16);
    } else if (word == "anyres_tiles") {
      check_tiles(folder, report, key, name, picture);
    } else {
      check_plain_resize(folder, report, key, word, picture);
    }
  }
}

void check_facts(Folder& folder, Report& report, const std::string& name, const Image& picture) {
  const std::string path = "pictures/" + name;
  const image::Size in{picture.width, picture.height};
  const auto same_size = [&](const std::string& key, image::Size got) {
    const auto want = folder.numbers(key);
    report.exact(key, want == std::vector<double>{double(got.width), double(got.height)},
                 fmt::format("{}x{} here", got.width, got.height));
  };
  same_size(path + "/size_wh", in);
  for (const std::string& key : folder.keys(path)) {
    if (const auto side = side_of(key, "resized_wh_"))
      same_size(path + "/" + key, image::shortest_edge_size(in, *side));
    if (const auto side = side_of(key, "normalised_mean_std_")) {
      const at::Tensor values = normalised(picture, *side).to(at::kDouble);
      const at::Tensor got = at::stack({values.mean(), values.std(/*unbiased=*/false)});
      const at::Tensor want = at::tensor(folder.numbers(path + "/" + key), at::kDouble);
      const double error =
          got.sizes() == want.sizes() ? (got - want).abs().max().item<double>() : INFINITY;
      report.number(path + "/" + key, error, kNormalisedTolerance, "abs");
    }
  }
  folder.set_aside({(path + "/mode").c_str(), (path + "/from").c_str(), (path + "/box").c_str()});
}

void check_one(Folder& folder, Report& report, const std::string& name) {
  const at::Tensor source = pixels(folder, name + "/source");
  const bool alpha = source.size(2) == 4;
  const Image picture = alpha ? over_white(source, name) : to_image(source);
  if (folder.has_tensor(name + "/on_white"))
    check_picture(folder, report, name + "/on_white", picture);
  check_tensors(folder, report, name, picture);
  check_facts(folder, report, name, picture);
}

void check_jpeg(Folder& folder, Report& report, const std::string& name) {
  const std::string path = "jpeg/" + name;
  const Json file = folder.take(path + "/file");
  const std::string leaf = file.is_string() ? file.get<std::string>() : "";
  if (leaf.empty() || leaf.find('/') != std::string::npos)
    throw DataError("expected.json: {}/file is no file name", path);
  const std::string bytes = read_file(folder.directory() / leaf);
  const auto decoded = image::decode(image::as_bytes(bytes), {.orient = image::Orient::kIgnore});
  if (folder.has(path + "/pillow")) {
    folder.take(path + "/pillow");
    report.exact(path, !decoded.ok(), "a damaged file was accepted");
    return;
  }
  if (!decoded.ok()) {
    report.exact(path, false, decoded.failure().message);
    return;
  }
  check_picture(folder, report, path, decoded->image);
  const std::vector<double> stored{double(decoded->header.stored.width),
                                   double(decoded->header.stored.height)};
  report.exact(path + "/stored_wh", folder.numbers(path + "/stored_wh") == stored, "another size");
  report.exact(path + "/orientation",
               folder.number(path + "/orientation") == decoded->header.orientation, "another tag");
  folder.set_aside({(path + "/mode").c_str()});
}

}  // namespace

void check_images(Folder& folder, Report& report) {
  folder.set_aside({"made_with"});
  const auto mean = folder.numbers("mean");
  const image::Normalisation clip;
  report.exact("mean", mean == std::vector<double>(clip.mean.begin(), clip.mean.end()),
               "not CLIP's");
  const image::Colour colour = image::mean_colour(clip.mean);
  report.exact("pad_colour",
               folder.numbers("pad_colour") ==
                   std::vector<double>{double(colour.r), double(colour.g), double(colour.b)},
               fmt::format("{} {} {} here", colour.r, colour.g, colour.b));
  for (const std::string& name : folder.keys("pictures")) check_one(folder, report, name);
  check_token_counts(folder, report);
  for (const std::string& name : folder.keys("jpeg")) check_jpeg(folder, report, name);
}

}  // namespace mm::oracle
