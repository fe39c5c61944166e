#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "lib/base/error.h"
#include "lib/health/expectation.h"
#include "tests/health/planted_node.h"

// Every key of a SKU file: read where it is right, refused by name where it is not.

using namespace mm::health;
using mm::health::test::PlantedTree;

namespace {

// A value of the key's type, as TOML.
std::string right_value(const mm::ConfigKey& key) {
  if (key.type.starts_with("integer")) return "7";
  if (key.type.starts_with("number")) return "0.5";
  if (key.type.starts_with("true or false") || key.type.starts_with("bool")) return "true";
  if (key.type.find("list") != std::string::npos) return "[\"x\"]";
  return "\"x\"";
}

std::string file_with(const mm::ConfigKey& key, const std::string& value) {
  const size_t dot = key.key.find('.');
  if (dot == std::string::npos) return fmt::format("{} = {}\n", key.key, value);
  return fmt::format("[{}]\n{} = {}\n", key.key.substr(0, dot), key.key.substr(dot + 1), value);
}

std::string refused(const PlantedTree& tree, const std::string& text) {
  tree.plant("sku.toml", text);
  try {
    load_expectation(tree.root() / "sku.toml");
  } catch (const mm::UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("expectation keys: each is read with a value of its type and says what it is") {
  const PlantedTree tree;
  for (const mm::ConfigKey& key : expectation_reference()) {
    CAPTURE(key.key);
    CAPTURE(key.type);
    CHECK_FALSE(key.doc.empty());
    CHECK(refused(tree, file_with(key, right_value(key))) == "");
  }
}

TEST_CASE("expectation keys: each refuses a value of another type, naming itself and the place") {
  const PlantedTree tree;
  for (const mm::ConfigKey& key : expectation_reference()) {
    CAPTURE(key.key);
    const std::string said = refused(tree, file_with(key, "{ a = 1 }"));
    CHECK(said.find("sku.toml:") != std::string::npos);
    CHECK(said.find(key.key.substr(key.key.find('.') + 1)) != std::string::npos);
    if (key.type.starts_with("integer") || key.type.starts_with("number"))
      CHECK(refused(tree, file_with(key, "-1")) != "");
  }
}

TEST_CASE("expectation keys: a mistyped one is refused with what it may have been") {
  const PlantedTree tree;
  CHECK(refused(tree, "[gpu]\nnvlink = 18\n").find("nvlinks") != std::string::npos);
  CHECK(refused(tree, "[speed]\nto_devices_gb_s = 50\n").find("to_device_gb_s") !=
        std::string::npos);
  CHECK(refused(tree, "[gpus]\ncount = 8\n") != "");
  CHECK(refused(tree, "count = 8\n") != "");
  CHECK(refused(tree, "[gpu\n") != "");
}

TEST_CASE("expectation keys: the built-in kinds differ where their hardware does") {
  const Expectation h100 = load_expectation("h100-8"), h200 = load_expectation("h200-8");
  CHECK(h100.gpu.memory_gib_min < h200.gpu.memory_gib_min);
  CHECK(h100.gpu.name != h200.gpu.name);
  CHECK(h100.infiniband.ports == h200.infiniband.ports);
  CHECK(h100.speed.to_device_gb_s == 50);
  CHECK(h200.speed.to_host_gb_s == 50);
  const Expectation cpu = load_expectation("cpu-only");
  CHECK(cpu.gpu.count == 0);
  CHECK_FALSE(cpu.speed.to_device_gb_s);
  CHECK_FALSE(cpu.network.all_reduce);
}
