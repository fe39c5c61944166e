#include "lib/probe/nccl_backend.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "lib/base/error.h"
#include "lib/probe/collective_bench.h"

using namespace mm::probe;

namespace {

const NcclOptions kFake{.nccl_library = MM_FAKE_NCCL_LIBRARY,
                        .cudart_library = MM_FAKE_NCCL_LIBRARY};

}  // namespace

TEST_CASE("nccl backend: every collective runs in and out of place, with right results") {
  for (const std::string& name : collective_words()) {
    CAPTURE(name);
    NcclBackend backend(kFake);
    backend.connect(backend.unique_id());
    CHECK(backend.version() == "2.27.5");
    const auto rows = run_bench(
        {.collective = *collective_of(name), .min_bytes = 256, .max_bytes = 256}, backend, {0}, 0);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].out_of_place.wrong == 0);
    if (rows[0].in_place) CHECK(rows[0].in_place->wrong == 0);
  }
}

TEST_CASE("nccl backend: what is missing or fails is named") {
  NcclOptions none = kFake;
  none.nccl_library = "libno-nccl.so";
  CHECK_THROWS_WITH_AS(NcclBackend{none}, "NCCL: libno-nccl.so not found; MMPROBE_NCCL names it",
                       mm::DeviceError);
  none = kFake;
  none.cudart_library = "libc.so.6";
  CHECK_THROWS_WITH_AS(NcclBackend{none}, "libc.so.6 lacks cudaSetDevice", mm::DeviceError);
  NcclOptions second = kFake;
  second.device = 1;
  CHECK_THROWS_WITH_AS(NcclBackend{second}, "CUDA device 1: cudaSetDevice: invalid device ordinal",
                       mm::DeviceError);
  NcclBackend backend(kFake);
  backend.connect(backend.unique_id());
  backend.reserve(4, 1);
  ::setenv("MM_FAKE_NCCL_FAIL", "ncclAllReduce", 1);
  CHECK_THROWS_AS(backend.run({.count = 4}, 1), mm::CommError);
  ::unsetenv("MM_FAKE_NCCL_FAIL");
  CHECK_THROWS_AS(backend.connect("00"), mm::CommError);
}

TEST_CASE(
    "nccl backend: a call that never ends, or whose peer is lost, ends with an error in time") {
  NcclOptions quick = kFake;
  quick.timeout_s = 0.05;
  for (const char* fault : {"never", "async", "ncclCommGetAsyncError"}) {
    CAPTURE(fault);
    NcclBackend backend(quick);
    backend.connect(backend.unique_id());
    backend.reserve(4, 1);
    ::setenv("MM_FAKE_NCCL_FAIL", fault, 1);
    const char* said =
        std::string(fault) == "never"
            ? "NCCL: all_reduce on rank 0: no end within 0.05 s"
            : "NCCL: all_reduce on rank 0: internal error; NCCL_DEBUG=INFO says more";
    CHECK_THROWS_WITH_AS(backend.run({.count = 4}, 1), said, mm::CommError);
    ::unsetenv("MM_FAKE_NCCL_FAIL");
  }
}
