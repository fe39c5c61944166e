#include "lib/run/metrics.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "lib/base/hash.h"

namespace fs = std::filesystem;
using namespace mm::run;

namespace {

struct Directory {
  fs::path path = fs::temp_directory_path() / ("mm_metrics_test_" + std::to_string(::getpid()));
  Directory() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Directory() { fs::remove_all(path); }
};

StepRecord record(int64_t step) {
  return {.step = step,
          .stage = "align",
          .loss = 1.5,
          .grad_norm = 2,
          .lr = {{"language", 1e-3}},
          .tokens = 7};
}

}  // namespace

TEST_CASE(
    "MetricsWriter: what is written is read back, and a resume cuts the steps that run again") {
  Directory dir;
  {
    MetricsWriter writer(dir.path, 0);
    for (int step = 1; step <= 5; ++step) writer.write(record(step));
  }
  CHECK(read_metrics(dir.path).size() == 5);
  {
    MetricsWriter writer(dir.path, 3);
    writer.write(record(4));
  }
  const std::vector<StepRecord> records = read_metrics(dir.path);
  REQUIRE(records.size() == 4);
  CHECK(records.back().step == 4);
  CHECK(records.back().lr.at("language") == 1e-3);
  CHECK(records.back().to_json() == record(4).to_json());
}

TEST_CASE("read_metrics: a last line cut in the middle is left out") {
  Directory dir;
  {
    MetricsWriter writer(dir.path, 0);
    writer.write(record(1));
  }
  mm::File file = mm::File::create(dir.path / "metrics.jsonl", true);
  file.write(std::string_view("{\"step\":2,\"lo"));
  CHECK(read_metrics(dir.path).size() == 1);
  cut_lines_after_step(dir.path / "metrics.jsonl", 1);
  CHECK(mm::read_file(dir.path / "metrics.jsonl").back() == '\n');
}

TEST_CASE("TensorboardWriter: frames carry length and masked checksums") {
  Directory dir;
  { TensorboardWriter(dir.path / "tb").scalar("a", 0.5, 3); }
  std::string text;
  for (const auto& entry : fs::directory_iterator(dir.path / "tb"))
    text = mm::read_file(entry.path());
  size_t at = 0, frames = 0;
  const auto masked = [](std::string_view bytes) {
    const uint32_t crc = mm::crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  while (at < text.size()) {
    uint64_t length = 0;
    uint32_t head = 0, tail = 0;
    std::memcpy(&length, text.data() + at, 8);
    std::memcpy(&head, text.data() + at + 8, 4);
    CHECK(head == masked(std::string_view(text).substr(at, 8)));
    REQUIRE(at + 16 + length <= text.size());
    std::memcpy(&tail, text.data() + at + 12 + length, 4);
    CHECK(tail == masked(std::string_view(text).substr(at + 12, length)));
    at += 16 + length;
    ++frames;
  }
  CHECK(frames == 2);
}
