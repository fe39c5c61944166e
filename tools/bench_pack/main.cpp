// bench_pack FOLDER --tokenizer FILE: packs the folder's pictures and prints images per second of
// processor time, beside decoding the same files alone. Nothing is asserted by time.
#include <fmt/format.h>
#include <jpeglib.h>  // needs <cstdio> before it
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/data/pack_dataset.h"
#include "lib/image/decode.h"
#include "tools/bench_pack/bench_row.h"

namespace {

namespace fs = std::filesystem;
using namespace mm::bench;

#define MM_TEXT_OF(x) #x
#define MM_TEXT(x) MM_TEXT_OF(x)

struct Arguments {
  fs::path folder, tokenizer, keep;
  int side = 336, repeat = 1, threads = 1, rounds = 3;
  bool json = false;
};

/// A list of all pictures, `repeat` times; returns the number of rows.
uint64_t write_list(const Arguments& a, const fs::path& path) {
  std::string text;
  uint64_t rows = 0;
  for (int i = 0; i < a.repeat; ++i) {
    for (const fs::path& picture : pictures_below(a.folder)) {
      const auto name = fs::relative(picture, a.folder).string();
      text += mm::Json{{"id", fmt::format("{}", rows++)}, {"image", name}, {"text", "a picture"}}
                  .dump() +
              "\n";
    }
  }
  mm::write_file_atomic(path, text);
  return rows;
}

double decode_alone(const Arguments& a) {
  std::vector<std::string> files;
  for (const fs::path& path : pictures_below(a.folder)) files.push_back(mm::read_file(path));
  const Spent spent = spend([&] {
    for (const std::string& file : files) (void)mm::image::decode(mm::image::as_bytes(file));
  });
  return spent.cpu_s * a.repeat;
}

Row pack(const Arguments& a, const std::string& storage, bool optimize, const fs::path& work) {
  mm::data::PackOptions options;
  options.source = {
      .kind = mm::data::SourceKind::kJsonl, .path = work / "list.jsonl", .image_root = a.folder};
  options.tokenizer = a.tokenizer;
  options.pictures.side = a.side;
  options.pictures.storage = storage;
  options.pictures.jpeg_optimize = optimize;
  Row row{.what = "pack",
          .system = optimize ? "mmshard pack --jpeg-optimize" : "mmshard pack",
          .storage = storage};
  for (int round = 0; round < a.rounds; ++round) {
    const fs::path out = work / (optimize ? storage + "-optimized" : storage);
    fs::remove_all(out);
    mm::data::PackResult result;
    const Spent spent = spend([&] {
      result =
          mm::data::pack_dataset(options, {.output = out, .threads = a.threads, .bad_limit = 1});
    });
    if (round > 0 && spent.cpu_s > row.spent.cpu_s) continue;
    row.spent = spent;
    row.samples = result.manifest.counts.samples;
    uint64_t bytes = 0;
    for (const auto& shard : result.manifest.shards) bytes += shard.file.bytes;
    row.bytes_sample = static_cast<double>(bytes) / static_cast<double>(row.samples);
  }
  return row;
}

int run(int argc, char** argv) {
  Arguments a;
  CLI::App app("Images packed per second and core; the least processor time of several rounds.");
  app.add_option("folder", a.folder, "pictures")->required()->check(CLI::ExistingDirectory);
  app.add_option("--tokenizer", a.tokenizer, "any tokenizer")->required()->check(CLI::ExistingFile);
  app.add_option("--keep", a.keep, "folder for the packed sets, for bench_load [a temporary one]");
  app.add_option("--side", a.side, "pixels of the stored side")->capture_default_str();
  app.add_option("--repeat", a.repeat, "times that each picture is packed")->capture_default_str();
  app.add_option("--threads", a.threads)->capture_default_str();
  app.add_option("--rounds", a.rounds)->capture_default_str();
  app.add_flag("--json", a.json, "a JSON line a row");
  CLI11_PARSE(app, argc, argv);
  const fs::path work =
      a.keep.empty() ? fs::temp_directory_path() / fmt::format("bench_pack.{}", getpid()) : a.keep;
  fs::create_directories(work);
  write_list(a, work / "list.jsonl");
  std::vector<Row> rows;
  double limit_s = decode_alone(a);
  rows.push_back(pack(a, "jpeg", false, work));
  rows.push_back(pack(a, "jpeg", true, work));
  rows.push_back(pack(a, "raw", false, work));
  limit_s = std::min(limit_s, decode_alone(a));
  for (Row& row : rows) row.limit_cpu_s = limit_s;
  if (!a.json) {
    fmt::print("{}; libjpeg-turbo {}, {} threads; limit: decoding the same files alone, {:.1f}/s\n",
               hardware(), MM_TEXT(LIBJPEG_TURBO_VERSION), a.threads,
               static_cast<double>(rows[0].samples) / limit_s);
  }
  print(rows, a.json);
  if (a.keep.empty()) fs::remove_all(work);
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
