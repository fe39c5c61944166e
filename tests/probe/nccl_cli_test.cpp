#include <doctest/doctest.h>

#include <filesystem>

#include "lib/base/json.h"
#include "tests/probe/run_mmprobe.h"

using mm::probe::test::mmprobe;
using mm::probe::test::Run;

namespace {

const std::string kFake =
    "MMPROBE_NCCL=" MM_FAKE_NCCL_LIBRARY " MMPROBE_CUDART=" MM_FAKE_NCCL_LIBRARY;

// The engine with Gloo is built only where LibTorch is.
bool has_gloo() { return std::filesystem::exists(MM_BIN_DIR "/../lib/libmm_probe_engine.so"); }

}  // namespace

TEST_CASE("mmprobe nccl: one rank over a stand-in of NCCL; text, JSON and exit codes") {
  const Run text = mmprobe("nccl all_gather --min-bytes 1K --max-bytes 4K", kFake);
  CHECK(text.exit_code == 0);
  CHECK(text.output.starts_with(
      "# Collective test starting: all_gather over nccl 2.27.5, 1 ranks\n"));
  CHECK(text.output.find("\n        4096          1024     float    none      -1 ") !=
        std::string::npos);
  CHECK(text.output.find("# Out of bounds values : 0 OK\n") != std::string::npos);
  const Run json =
      mmprobe("nccl broadcast --max-bytes 1K --min-bytes 1K --json --expect 1e9", kFake);
  CHECK(json.exit_code == 69);
  const mm::Json parsed = mm::Json::parse(json.output);
  CHECK(parsed["verdict"] == "bad");
  CHECK(parsed["findings"][0]["code"] == "F06");
  CHECK(parsed["groups"][0]["rows"][0]["in_place"]["wrong"] == 0);
}

TEST_CASE("mmprobe nccl: what is missing ends with a line that says so") {
  const Run none = mmprobe("nccl all_reduce", "MMPROBE_NCCL=libno.so");
  CHECK(none.exit_code == 69);
  CHECK(none.output == "mmprobe: error: NCCL: libno.so not found; MMPROBE_NCCL names it\n");
  CHECK(mmprobe("nccl allreduce").exit_code == 2);
  if (!has_gloo()) {
    const Run gloo = mmprobe("nccl all_reduce --backend gloo");
    CHECK(gloo.exit_code == 2);
    CHECK(gloo.output.starts_with("mmprobe: error: --backend gloo needs LibTorch: "));
  }
}

TEST_CASE("mmprobe nccl: every collective over Gloo between two and three ranks") {
  if (!has_gloo()) {
    MESSAGE("skipped: this build has no LibTorch");
    return;
  }
  for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                 "broadcast", "reduce", "send_receive"}) {
    for (const char* ranks : {"2", "3"}) {
      CAPTURE(collective);
      CAPTURE(ranks);
      const Run run =
          mmprobe(std::string("nccl ") + collective + " --backend gloo --nproc " + ranks +
                  " --min-bytes 1K --max-bytes 64K --factor 8 --iterations 3 --json");
      CHECK(run.exit_code == 0);
      const mm::Json json = mm::Json::parse(run.output, nullptr, false);
      REQUIRE(json.is_object());
      CHECK(json["n"] == std::stoi(ranks));
      for (const auto& row : json["groups"][0]["rows"]) CHECK(row["out_of_place"]["wrong"] == 0);
    }
  }
}

TEST_CASE("mmprobe nccl: over Gloo by local rank") {
  if (!has_gloo()) return;
  const Run run = mmprobe(
      "nccl all_reduce --backend gloo --nproc 2 --group node --max-bytes 1K --min-bytes 1K");
  CHECK(run.exit_code == 0);
  CHECK(run.output.find("Group  0") != std::string::npos);
}
