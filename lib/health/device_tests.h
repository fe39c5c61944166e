#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/health/expectation.h"
#include "lib/health/finding.h"

namespace mm::health {

/// What one GPU computes and copies. Nothing: not measured.
struct DeviceTest {
  std::string name;                        ///< GPUs of one name are compared
  uint64_t hash = 0;                       ///< of the bits of one product of fixed numbers
  bool steady = true;                      ///< every product of the run had these bits
  std::optional<double> gemm_tflop_s;      ///< bf16, all GPUs at the same time
  std::optional<double> memory_copy_gb_s;  ///< within its memory, read and written
  std::optional<double> to_device_gb_s, to_host_gb_s;  ///< pinned memory, one GPU after another
  std::string problem;                                 ///< why it computes nothing; empty: it does
};

/// `checked` is false if nothing can be said; `problem` says why.
struct DeviceTests {
  bool checked = false;
  std::string problem;
  std::vector<DeviceTest> devices;  ///< in CUDA's order
};

Json device_tests_json(const DeviceTests& tests);
/// The inverse; throws DataError.
DeviceTests device_tests_from(const Json& json);

/// Runs `measure`, whose text is device_tests_json, in a child process that is given up after
/// `deadline_ms`: a driver that hangs or dies is a result (a device problem of all), not our end.
DeviceTests device_tests_guarded(const std::function<std::string()>& measure, int deadline_ms);

struct DeviceDeadlines {
  int load_ms = 120'000;    ///< gigabytes, that may come over a network
  int measure_ms = 90'000;  ///< of the GPUs alone
};
/// The same, after `load` has ended in a child of its own: what it read is in memory from then on,
/// so that its time is not taken for a GPU's. A load that fails, dies or hangs: not checked.
DeviceTests device_tests_loaded(const std::function<void()>& load,
                                const std::function<std::string()>& measure,
                                const DeviceDeadlines& deadlines);

/// F17 a GPU does not compute; F55 other bits than its fellows (or than itself before); F05 slower
/// than its fellows by more than a tenth; F56 below expectation by more than the tolerance.
std::vector<Finding> judge_devices(const DeviceTests& tests, const Expectation& expected);

}  // namespace mm::health
