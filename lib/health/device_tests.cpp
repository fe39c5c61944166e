#include "lib/health/device_tests.h"

#include "lib/base/error.h"
#include "lib/base/text_escape.h"
#include "lib/health/guarded_call.h"

namespace mm::health {
namespace {

constexpr size_t kMaxDevices = 64;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> number_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

Json device_json(const DeviceTest& test) {
  return {{"name", test.name},
          {"hash", test.hash},
          {"steady", test.steady},
          {"gemm_tflop_s", or_null(test.gemm_tflop_s)},
          {"memory_copy_gb_s", or_null(test.memory_copy_gb_s)},
          {"to_device_gb_s", or_null(test.to_device_gb_s)},
          {"to_host_gb_s", or_null(test.to_host_gb_s)},
          {"problem", escape_text(test.problem, 400)}};
}

DeviceTest device_from(const Json& json) {
  return {.name = json.at("name"),
          .hash = json.at("hash"),
          .steady = json.at("steady"),
          .gemm_tflop_s = number_at(json, "gemm_tflop_s"),
          .memory_copy_gb_s = number_at(json, "memory_copy_gb_s"),
          .to_device_gb_s = number_at(json, "to_device_gb_s"),
          .to_host_gb_s = number_at(json, "to_host_gb_s"),
          .problem = json.at("problem")};
}

}  // namespace

Json device_tests_json(const DeviceTests& tests) {
  Json devices = Json::array();
  for (const DeviceTest& test : tests.devices) devices.push_back(device_json(test));
  return {{"checked", tests.checked}, {"problem", tests.problem}, {"devices", devices}};
}

DeviceTests device_tests_from(const Json& json) try {
  DeviceTests tests{.checked = json.at("checked"), .problem = json.at("problem")};
  const Json& devices = json.at("devices");
  if (devices.size() > kMaxDevices)
    throw DataError("tests of GPUs: {} of them, at most {}", devices.size(), kMaxDevices);
  for (const Json& one : devices) tests.devices.push_back(device_from(one));
  return tests;
} catch (const Json::exception& error) {
  throw DataError("no tests of GPUs: {}", error.what());
}

DeviceTests device_tests_guarded(const std::function<std::string()>& measure, int deadline_ms) {
  const auto answer = GuardedCall::start(measure).finish(deadline_ms);
  if (answer) return device_tests_from(parse_json(*answer, "tests of GPUs"));
  // Nothing asked a GPU, or it was asked and said why it could not be measured.
  const bool died = answer.failure().message == "the probing process died";
  if (answer.failure().kind != "hung" && !died) return {.problem = answer.failure().message};
  // The library was there and took the process with it, or never came back.
  return {.checked = true,
          .devices = {
              {.name = "all GPUs", .problem = "while they computed: " + answer.failure().message}}};
}

DeviceTests device_tests_loaded(const std::function<void()>& load,
                                const std::function<std::string()>& measure,
                                const DeviceDeadlines& deadlines) {
  const auto loading = [&load] {
    load();
    return std::string();
  };
  if (const auto loaded = GuardedCall::start(loading).finish(deadlines.load_ms); !loaded)
    return {.problem = "the engine with LibTorch: " + loaded.failure().message};
  return device_tests_guarded(measure, deadlines.measure_ms);
}

}  // namespace mm::health
