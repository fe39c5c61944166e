#include "lib/run/metrics.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "lib/base/error.h"
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

TEST_CASE("TensorBoard: a resumed run says from which step on earlier files do not count") {
  Directory dir;
  MetricsWriter writer(dir.path, 3);
  std::string text;
  for (const auto& entry : fs::directory_iterator(dir.path / "tb"))
    text += mm::read_file(entry.path());
  // Event: step 4, session_log of status START.
  CHECK(text.find("\x10\x04\x3a\x02\x08\x01") != std::string::npos);
}

TEST_CASE("StepRecord: each metric is written in the steps that it is due after") {
  StepRecord full = record(10);
  full.part_norms = {{"vision", 3}, {"language", 4}};
  full.loss_by = {{"picture", 1.25}, {"text", 2.5}};
  full.loss_by_source = {{"noto", 1.5}};
  full.activations = {{"layer 0", {0.5, 2}}};
  full.step_ms = 5, full.tokens_s = 100, full.memory_gib = 0.5, full.cpu_use = 1.5;
  full.samples_s = 20, full.mfu = 0.5, full.gpu_use = 0.25;
  const MetricSchedule schedule{.grad_norm = 4,
                                .lr = 3,
                                .grad_norm_parts = 3,
                                .vision_text_ratio = 2,
                                .loss_by = 3,
                                .loss_by_source = 6,
                                .activation_mean = 4,
                                .activation_variance = 10,
                                .step_ms = 5,
                                .tokens_s = 4,
                                .mfu = 0,
                                .mem_gib = 0,
                                .cpu_use = 4,
                                .gpu_use = 5};
  const mm::Json json = full.due(schedule).to_json();
  CHECK(json["vision_text_ratio"] == 0.75);
  CHECK(json["activations"]["layer 0"] == mm::Json{{"variance", 2.0}});
  CHECK(json["samples_s"] == 20);
  CHECK(json["gpu_use"] == 0.25);
  CHECK(json["step_ms"] == 5);
  CHECK(json["loss"] == 1.5);
  for (const char* absent : {"grad_norm", "lr", "grad_norm_parts", "loss_by", "loss_by_source",
                             "tokens_s", "mfu", "mem_gib", "cpu_use"}) {
    CAPTURE(absent);
    CHECK(!json.contains(absent));
  }
  for (const Metric& metric : metrics_of(full.due(schedule))) CHECK(metric.name != "grad_norm");
  full.step = 12;
  const mm::Json later = full.due(schedule).to_json();
  CHECK(later["loss_by"]["text"] == 2.5);
  CHECK(later["cpu_use"] == 1.5);
  CHECK(later["lr"]["language"] == 1e-3);
  CHECK(later["activations"]["layer 0"] == mm::Json{{"mean", 0.5}});
  CHECK(!later.contains("step_ms"));
  for (const StepRecord& one : {full, full.due(schedule)})
    CHECK(StepRecord::from_json(one.to_json()).to_json() == one.to_json());
}

TEST_CASE("StepRecord: a loss that is not due is absent, one that is no number is null") {
  StepRecord r = record(3);
  r.loss = kUnknown;
  CHECK(r.to_json().contains("loss"));
  const StepRecord without = StepRecord::from_json(r.due({.loss = 2, .grad_norm = 2}).to_json());
  CHECK(!without.to_json().contains("loss"));
  CHECK(without.line() == "step 3 align");
}

TEST_CASE("read_metrics: a value of another type is named by file and line") {
  Directory dir;
  for (const char* line : {"[3]", R"({"step": "three"})", R"({"step": 2, "lr": {}, "tokens": []})",
                           R"({"step": 2, "activations": 7, "samples": "a"})"}) {
    CAPTURE(line);
    mm::write_file_atomic(dir.path / "metrics.jsonl", std::string("{\"step\": 1}\n") + line + "\n");
    const auto named = doctest::Contains("metrics.jsonl: line 2: no record of a step");
    CHECK_THROWS_WITH_AS((void)read_metrics(dir.path), named, mm::DataError);
  }
  mm::write_file_atomic(dir.path / "metrics.jsonl", "[3]\n");
  CHECK_THROWS_WITH_AS(cut_lines_after_step(dir.path / "metrics.jsonl", 1),
                       doctest::Contains("metrics.jsonl: byte 0"), mm::DataError);
}

TEST_CASE("metrics.prom: the newest value of each figure, whole, with labels") {
  Directory dir;
  StepRecord r = record(7);
  r.loss_by_source = {{"no\"to", 1.5}};
  {
    MetricsWriter writer(dir.path, 0);
    writer.write(record(6));
    writer.write(r);
  }
  const std::string text = mm::read_file(dir.path / "metrics.prom");
  const std::string run = dir.path.filename().string();
  CHECK(text.find("mmkit_step{run=\"" + run + "\"} 7\n") != std::string::npos);
  CHECK(text.find("mmkit_tokens_total{run=\"" + run + "\"} 14\n") != std::string::npos);
  CHECK(text.find("mmkit_train_loss{run=\"" + run + "\"} 1.5\n") != std::string::npos);
  CHECK(text.find("source=\"no\\\"to\"") != std::string::npos);
  CHECK(text.find("# TYPE mmkit_train_lr gauge") != std::string::npos);
  CHECK(text.find("nan") == std::string::npos);
}

TEST_CASE("StepRecord: a skipped step says why, in the file and on its line") {
  StepRecord r = record(3);
  CHECK(!r.to_json().contains("skipped"));
  CHECK(!r.to_json().contains("skip_reason"));
  r.skipped = true;
  CHECK(r.line().ends_with(" (skipped)"));  // read from a file of before there were reasons
  CHECK(!r.to_json().contains("skip_reason"));
  for (const auto& [reason, words] : {std::pair("overflow", "fp16 gradients overflowed"),
                                      std::pair("no_targets", "no targets")}) {
    r.skip_reason = reason;
    CHECK(r.to_json()["skipped"] == true);
    CHECK(r.to_json()["skip_reason"] == reason);
    CHECK(StepRecord::from_json(r.to_json())
              .line()
              .ends_with(std::string("(skipped: ") + words + ")"));
  }
}
