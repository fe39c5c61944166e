#include "tools/mm_oracle/kinds.h"

#include <doctest/doctest.h>

#include <functional>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

using namespace mm::oracle;
using mm::Json;
using mm::test::TempDir;

namespace {

const std::filesystem::path kOracles = std::filesystem::path(MM_TEST_DATA) / "oracles";

/// A copy of an oracle's folder with its expected.json changed.
Report changed(const std::string& name, const std::function<void(Json&)>& change) {
  const TempDir directory;
  std::filesystem::copy(kOracles / name, directory.path(),
                        std::filesystem::copy_options::recursive);
  Json expected = mm::read_json_file(directory.path() / "expected.json");
  change(expected);
  mm::write_file_atomic(directory.path() / "expected.json", expected.dump());
  Folder folder(directory.path());
  return compare(kind_of(folder), folder);
}

}  // namespace

TEST_CASE("a number that is off, a new key and a new curve each fail, what comes later does not") {
  const Report whole = changed("schedules", [](Json&) {});
  CHECK(whole.passed());
  const Report later = changed("schedules", [](Json& e) { e["what"] = "mixture of experts"; });
  CHECK(later.passed());
  CHECK(later.count(Quantity::Status::kNotBuilt) > 0);
  CHECK(
      !changed("schedules", [](Json& e) { e["lr"]["curves"]["wsd_cosine"][20] = 1e-4; }).passed());
  const Report key = changed("schedules", [](Json& e) { e["lr"]["surprise"] = 1; });
  CHECK(key.count(Quantity::Status::kUnknown) == 1);
  CHECK(!changed("schedules", [](Json& e) { e["lr"]["curves"]["sawtooth"] = {1, 2}; }).passed());
}

TEST_CASE("a folder of another kind is refused by name") {
  CHECK_THROWS_WITH_AS(changed("schedules", [](Json& e) { e["what"] = "horoscopes"; }),
                       doctest::Contains("horoscopes"), mm::DataError);
  CHECK_THROWS_AS(changed("schedules", [](Json& e) { e.erase("what"); }), mm::DataError);
}

TEST_CASE("LLaVA: a wrong loss, gradient norm, change and list of names each fail") {
  const auto outside = [](const std::function<void(Json&)>& change) {
    return changed("llava", change).count(Quantity::Status::kOutside);
  };
  const std::string q = "language_model.model.layers.0.self_attn.q_proj.weight";
  CHECK(outside([](Json& e) { e["loss"] = e["loss"].get<double>() * 1.00001; }) == 1);
  CHECK(outside([&](Json& e) {
          e["gradients"]["l2"][q] = e["gradients"]["l2"][q].get<double>() * 1.001;
        }) == 1);
  CHECK(outside([&](Json& e) { e["train"]["all_trained"]["param_change_l2"][q] = 1.0; }) == 1);
  CHECK(outside([](Json& e) { e["params_without_gradient"].erase(0); }) == 1);
  CHECK(outside([](Json& e) { e["optimizer"]["lr"] = 2e-3; }) > 5);
}
