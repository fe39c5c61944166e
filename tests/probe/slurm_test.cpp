#include <doctest/doctest.h>

#include <filesystem>

#include "lib/base/json.h"
#include "tests/probe/run_mmprobe.h"
#include "tests/probe/slurm_lab.h"

using mm::Json;
using mm::probe::test::mmprobe;
using mm::probe::test::Run;
using mm::probe::test::SlurmLab;

TEST_CASE(
    "Slurm: srun starts fleet with pairs and a collective, whose ranks find one another without a "
    "port") {
  const SlurmLab lab;
  if (!lab.ready()) {
    MESSAGE("skipped: " << lab.why_not());
    return;
  }
  const std::string at = lab.root().string();
  const std::string srun =
      "cd " + at + " && " + lab.variables() + " timeout 100 srun -Q -N4 -n4 --chdir=" + at;
  // Four nodes of one machine measure one another's load, so figures are not judged.
  const std::string lenient = " --pair-bytes 1M --pair-tolerance 0.99 --pair-latency-factor 1e6";
  const Run fleet = mmprobe("fleet --json --history nodes.jsonl --timeout 30" + lenient, srun);
  INFO(fleet.output);
  const Json json = Json::parse(fleet.output, nullptr, false);
  REQUIRE(json.is_object());
  REQUIRE(json["nodes"].size() == 4);
  CHECK(json["nodes"][2]["host"] == "n3");
  CHECK(json["nodes"][2]["answered"] == true);
  CHECK(json["pairs"]["members"] == Json::array({"n1", "n2", "n3", "n4"}));
  CHECK(json["pairs"]["pairs"].size() == 4);
  if (std::filesystem::exists(MM_BIN_DIR "/../lib/libmm_probe_engine.so")) {
    const Json& collective = json["collectives"]["nccl-all"];
    CHECK(collective["n"] == 4);
    CHECK(collective["hosts"] == Json::array({"n1", "n2", "n3", "n4"}));
    CHECK(collective["failure"].is_null());
  } else {
    CHECK(json["collectives"].empty());
    CHECK(fleet.output.find("no LibTorch for Gloo") != std::string::npos);
  }
  const Run part = mmprobe("fleet --json --checks node --timeout 30", srun);
  CHECK(Json::parse(part.output, nullptr, false)["pairs"].is_null());
  // The nodes' names are Slurm's alone and do not resolve here.
  const Run pairs =
      mmprobe("pairs --json --bytes 1M --pings 5 --tolerance 0.99 --latency-factor 1e6",
              srun + " --export=ALL,MASTER_ADDR=127.0.0.1");
  INFO(pairs.output);
  const Json measured = Json::parse(pairs.output, nullptr, false);
  REQUIRE(measured.is_object());
  CHECK(measured["members"] == Json::array({"n1", "n2", "n3", "n4"}));
  CHECK(measured["pairs"].size() == 4);
  CHECK(measured["verdict"] == "good");
  const Run wrong = mmprobe("pairs --timeout 5", srun + " --export=ALL,MASTER_ADDR=nodeB");
  CHECK(wrong.output.find("MASTER_ADDR=nodeB is not the first host of the job (n1)") !=
        std::string::npos);
}
