#include "lib/model/diffusion_load.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <set>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/model/strict_load.h"
#include "tests/base/temp_dir.h"

using namespace mm;
using namespace mm::model;

namespace {

const std::filesystem::path kOracles = std::filesystem::path(MM_TEST_DATA) / "oracles";

}  // namespace

TEST_CASE(
    "every tensor of a published file has its parameter, and comes back under all its names") {
  for (const char* name : {"dit", "pixart", "sd3/sd3", "sd3/sd35"}) {
    CAPTURE(name);
    const LoadedDiffusion loaded = load_diffusion(kOracles / name, {});
    const auto weights = ckpt::HfWeights::open(kOracles / name);
    std::set<std::string> written;
    for (const ParamSpec& spec : loaded.model.params) {
      written.insert(spec.name);
      for (const std::string& copy : repeated_names(loaded.config, spec.name)) {
        CHECK((weights.at(copy).read() == weights.at(spec.name).read()));
        written.insert(copy);
      }
    }
    std::set<std::string> stored;
    for (const auto& [tensor, entry] : weights.tensors()) stored.insert(tensor);
    CHECK(written == stored);
  }
}

TEST_CASE("embedders that differ from block to block are refused, unless the model has its own") {
  const auto directory = kOracles / "dit" / "untied";
  CHECK_THROWS_WITH_AS(load_diffusion(directory, {}), doctest::Contains("timestep_embedder"),
                       DataError);
  DiffusionConfig config = read_diffusion_config(directory / "config.json");
  config.own_embedders = true;
  const Model model = build_diffusion(config, {});
  CHECK(load_diffusion_weights(model, config, ckpt::HfWeights::open(directory), "here").size() ==
        model.params.size());
  CHECK(repeated_names(config, model.params[0].name).empty());
}

TEST_CASE("a file of another depth is refused") {
  DiffusionConfig config = read_diffusion_config(kOracles / "dit" / "config.json");
  config.layers = 2;
  CHECK_THROWS_AS(load_diffusion_weights(build_diffusion(config, {}), config,
                                         ckpt::HfWeights::open(kOracles / "dit"), "here"),
                  DataError);
}
