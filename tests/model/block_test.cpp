#include "lib/model/block.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/error.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;

namespace {

std::vector<bool> flags(const Model& model, const std::set<Part>& trained) {
  std::vector<bool> out;
  for (const ParamSpec& spec : model.params) out.push_back(trained.contains(spec.part));
  return out;
}

}  // namespace

TEST_CASE(
    "slots_needing_grad: a frozen prefix needs none, everything behind the first trained part "
    "does") {
  const Model model = build_llava(test::tiny_config());
  const auto check = [&](const std::set<Part>& trained, const std::string& first) {
    const auto needs = slots_needing_grad(model, flags(model, trained));
    bool reached = false;
    for (size_t i = 0; i < needs.size(); ++i) {
      reached = reached || model.slots[i] == first;
      CAPTURE(model.slots[i]);
      CHECK(needs[i] == reached);
    }
  };
  check({Part::kVision, Part::kProjector, Part::kLanguage}, "vision.0");
  check({Part::kProjector, Part::kLanguage}, "features");
  check({Part::kLanguage}, "hidden.0");
  check({}, "nothing");
}

TEST_CASE(
    "params_in_use: the layers behind the feature layer and the last norm are kept but not read") {
  const Model model = build_llava(test::tiny_config());
  const auto used = params_in_use(model);
  for (size_t i = 0; i < used.size(); ++i) {
    const std::string& name = model.params[i].name;
    const bool behind = name.find("encoder.layers.2.") != std::string::npos ||
                        name.find("post_layernorm") != std::string::npos;
    CAPTURE(name);
    CHECK(used[i] == !behind);
  }
}

TEST_CASE("decay is for parameters of two or more dimensions, names are unique, parts have words") {
  const Model model = build_llava(test::tiny_config());
  std::set<std::string> names;
  for (const ParamSpec& spec : model.params) {
    CAPTURE(spec.name);
    CHECK(spec.decay == (spec.shape.size() >= 2));
    CHECK(names.insert(spec.name).second);
  }
  CHECK(std::string(part_name(Part::kVision)) == "vision");
  CHECK(std::string(part_name(Part::kProjector)) == "projector");
  CHECK(std::string(part_name(Part::kLanguage)) == "language");
}

TEST_CASE("find_slot and find_param name what is missing") {
  const Model model = build_llava(test::tiny_config());
  CHECK(model.slots[find_slot(model, "features")] == "features");
  CHECK_THROWS_WITH_AS(find_slot(model, "featurs"), doctest::Contains("featurs"),
                       mm::InternalError);
  CHECK_THROWS_WITH_AS(find_param(model, "q.weight"), doctest::Contains("q.weight"),
                       mm::InternalError);
}
