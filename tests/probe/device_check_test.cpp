#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "tests/health/planted_node.h"

// The script that GPUs are checked with, run where there is none: what it says, skips and returns.

using mm::health::test::PlantedTree;

namespace {

const std::string kScript = std::string(MM_TEST_DATA) + "/../scripts/device-check.sh";

struct Ended {
  int code;
  std::string output;
};

Ended run(const std::string& before, const std::string& arguments = "") {
  FILE* pipe = ::popen((before + " bash " + kScript + " " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ended ended{0, {}};
  char part[4096];
  while (const size_t got = std::fread(part, 1, sizeof(part), pipe)) ended.output.append(part, got);
  ended.code = WEXITSTATUS(::pclose(pipe));
  return ended;
}

// A directory of commands in front of PATH: an nvidia-smi that lists one GPU.
std::string one_gpu(const PlantedTree& tree) {
  tree.plant("bin/nvidia-smi", "#!/bin/sh\necho 'GPU 0: NVIDIA H100 (UUID: GPU-1)'\n");
  ::chmod((tree.root() / "bin/nvidia-smi").c_str(), 0755);
  return "PATH=" + (tree.root() / "bin").string() +
         ":/usr/bin:/bin MMPROBE=" MM_BIN_DIR
         "/mmprobe "
         "MMPROBE_CUDART=" MM_FAKE_NCCL_LIBRARY " MMPROBE_NCCL=" MM_FAKE_NCCL_LIBRARY;
}

}  // namespace

TEST_CASE(
    "device check: without a GPU each part says that it was not checked, and the code is 77") {
  const PlantedTree tree;
  tree.plant("bin/nvidia-smi", "#!/bin/sh\nexit 9\n");
  ::chmod((tree.root() / "bin/nvidia-smi").c_str(), 0755);
  const Ended none = run("PATH=" + (tree.root() / "bin").string() + ":/usr/bin:/bin");
  CHECK(none.code == 77);
  CHECK(none.output ==
        "device check: kernels  not checked: no GPU (nvidia-smi lists none)\n"
        "device check: nccl     not checked: no GPU (nvidia-smi lists none)\n"
        "device check: node     not checked: no GPU (nvidia-smi lists none)\n"
        "device check: nothing was checked\n");
  CHECK(run("", "kernel").code == 2);
}

TEST_CASE("device check: every collective runs over NCCL, one rank a GPU; a failing one is BAD") {
  const PlantedTree tree;
  const Ended good = run(one_gpu(tree), "nccl");
  CHECK(good.code == 0);
  for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                 "broadcast", "reduce", "send_receive"})
    CHECK(good.output.find("# Collective test starting: " + std::string(collective) +
                           " over nccl 2.27.5, 1 ranks\n") != std::string::npos);
  CHECK(good.output.ends_with("device check: nccl     good\n"));
  const Ended bad = run(one_gpu(tree) + " MM_FAKE_NCCL_FAIL=ncclReduce", "nccl");
  CHECK(bad.code == 69);
  CHECK(bad.output.find("device check: reduce ended with 76\n") != std::string::npos);
  CHECK(bad.output.ends_with("device check: nccl     BAD (exit code 69)\n"));
}

TEST_CASE("device check: a failed build and an absent device are told from a bad kernel") {
  const PlantedTree tree;
  const std::string before = one_gpu(tree) +
                             " CUDACXX=nvcc MM_BUILD_DIR=" + (tree.root() / "build").string() +
                             " MM_FAKE_NCCL_FAIL=ncclReduce ";
  tree.plant("build/bin/mm_device_check", "#!/bin/sh\nexit $MM_CODE\n");
  tree.plant("bin/cmake", "#!/bin/sh\nexit ${MM_BUILT:-0}\n");
  for (const char* file : {"build/bin/mm_device_check", "bin/cmake"})
    ::chmod((tree.root() / file).c_str(), 0755);
  const auto ended = [&](const std::string& set, const std::string& parts) {
    const Ended end = run(before + set, parts);
    const size_t at = end.output.find("device check: kernels");
    return end.output.substr(at == std::string::npos ? 0 : at) + std::to_string(end.code);
  };
  CHECK(ended("MM_CODE=0", "kernels") == "device check: kernels  good\n0");
  CHECK(ended("MM_CODE=1", "kernels") == "device check: kernels  BAD (exit code 1)\n1");
  CHECK(ended("MM_CODE=139", "kernels") == "device check: kernels  BAD (exit code 139)\n69");
  CHECK(ended("MM_CODE=77", "kernels") ==
        "device check: kernels  not checked: CUDA finds no GPU\n"
        "device check: nothing was checked\n77");
  CHECK(ended("MM_BUILT=1", "kernels") ==
        "device check: kernels  BAD (the kernels were not built)\n69");
  // What one part lacks hides nothing of another.
  for (const char* code : {"MM_CODE=77", "MM_CODE=1"})
    CHECK(ended(code, "kernels nccl").ends_with("nccl     BAD (exit code 69)\n69"));
}
