#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/ckpt/convert.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/peft.h"
#include "lib/model/hf_load.h"
#include "lib/run/trained_model.h"
#include "tests/run/tiny_run.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;

namespace {

const std::vector<std::string> kLora{"lora.rank=2", "lora.alpha=8", "stage.1.lr.language=1e-2"};

Outcome start_of(const Recipe& recipe, const std::filesystem::path& run) {
  return run_threads(recipe, run, 1, {.stop_after = 1});
}

/// Adapters with dropout in every part.
std::vector<std::string> dropped(const std::vector<std::string>& more = {}) {
  std::vector<std::string> set = kLora;
  set.insert(set.end(), {"lora.dropout=0.2", "lora.vision=['*']", "lora.projector=['*']"});
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

bool is_adapter(const std::string& name) { return name.find(".lora_") != std::string::npos; }

bool is_language(const std::string& name) { return name.starts_with("language_model."); }

}  // namespace

TEST_CASE("C41: a part with adapters trains these alone; the others train as the stage says") {
  TempDir dir;
  const Outcome plain = start_of(tiny_recipe(dir.path()), dir / "plain");
  const Outcome done = run_threads(tiny_recipe(dir.path(), kLora), dir / "run", 1);
  REQUIRE(done.records.size() == 9);
  CHECK(done.records.back().loss < done.records.front().loss);
  const Outcome drawn =
      start_of(tiny_recipe(dir.path(), {"lora.rank=2", "lora.alpha=8", "stage.0.lr.language=0"}),
               dir / "drawn");
  size_t adapters = 0, moved = 0;
  for (const auto& [name, value] : done.weights) {
    const bool same = value.equal(drawn.weights.at(name));
    if (is_adapter(name)) {
      ++adapters;
      CHECK_FALSE_MESSAGE(same, name);
    }
    if (!is_adapter(name) && is_language(name)) CHECK_MESSAGE(same, name);
    if (!is_language(name)) moved += same ? 0 : 1;
  }
  CHECK(adapters == 2 * 2 * 7);
  CHECK(moved > 0);
  // No state is kept for frozen weights.
  const auto saved = mm::state::open_checkpoint(dir / "run");
  size_t moments = 0;
  for (const auto& tensor : saved.manifest.tensors) {
    const bool moment = tensor.name.starts_with("optimizer.");
    if (!moment || tensor.name.find(".language_model.") == std::string::npos) continue;
    CHECK_MESSAGE(is_adapter(tensor.name), tensor.name);
    ++moments;
  }
  CHECK(moments == 2 * adapters);
}

TEST_CASE("adapters: several ranks give the same run, and a stopped run the same bits") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(dir.path(), kLora);
  const Outcome one = run_threads(recipe, dir / "one", 1);
  for (const int ranks : {2, 3})
    CHECK(weight_difference(one, run_threads(recipe, dir / std::to_string(ranks), ranks)) < 1e-9);
  for (const int64_t step : {2, 6}) {
    const auto run = dir / ("stopped" + std::to_string(step));
    CHECK(run_threads(recipe, run, 1, {.stop_after = step}).code == mm::ExitCode::kSavedRunAgain);
    CHECK(same_bits(one, run_threads(recipe, run, 1)));
  }
  CHECK_THROWS_WITH_AS(run_threads(tiny_recipe(dir.path(), {"lora.rank=3"}), dir / "one", 1),
                       doctest::Contains("lora"), mm::Error);
}

TEST_CASE(
    "adapters: a run's export is the merged model, and its PEFT directory starts another run") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(dir.path(), kLora);
  const Outcome done = run_threads(recipe, dir / "run", 1);
  namespace ckpt = mm::ckpt;
  ckpt::convert(ckpt::resolve_target(dir / "run"), dir / "hf", {});
  const ckpt::HfWeights merged = ckpt::HfWeights::open(dir / "hf");
  for (const auto& [name, value] : done.weights) {
    if (is_adapter(name)) continue;
    at::Tensor expected = value;
    const std::string module = name.substr(0, name.rfind('.'));
    if (done.weights.contains(module + ".lora_A.weight") && name.ends_with(".weight"))
      expected = value + 4.0 * done.weights.at(module + ".lora_B.weight")
                                   .mm(done.weights.at(module + ".lora_A.weight"));
    const ckpt::HfTensor& tensor = merged.at(name);
    CHECK_MESSAGE(at::allclose(mm::model::to_tensor(*tensor.file, *tensor.entry).to(at::kDouble),
                               expected, 1e-12, 1e-13),
                  name);
  }
  ckpt::convert(ckpt::resolve_target(dir / "run"), dir / "peft",
                {.to = ckpt::ConvertOptions::To::kPeft});
  const ckpt::PeftAdapter adapter = ckpt::open_peft(dir / "peft");
  CHECK(adapter.rank == 2);
  CHECK(adapter.alpha == 8);
  // Tower and projector were trained whole, so they go along.
  const mm::Json config = mm::read_json_file(dir / "peft" / "adapter_config.json");
  CHECK(config["modules_to_save"] == mm::Json{"vision_tower", "multi_modal_projector"});
  std::vector<std::string> again = kLora;
  again.push_back("lora.from=" + (dir / "peft").string());
  again.push_back("stage.0.lr.language=0");
  const Outcome started = start_of(tiny_recipe(dir.path(), again), dir / "again");
  for (const auto& [name, tensor] : adapter.tensors)
    CHECK_MESSAGE(started.weights.at(name).equal(done.weights.at(name)), name);
}

TEST_CASE("laws 1 and 2 with dropout: ranks, recompute and a stop leave the run as it is") {
  TempDir dir;
  const Outcome one = run_threads(tiny_recipe(dir.path(), dropped()), dir / "one", 1);
  for (const int ranks : {2, 3})
    CHECK(weight_difference(one, run_threads(tiny_recipe(dir.path(), dropped()),
                                             dir / std::to_string(ranks), ranks)) < 1e-9);
  const std::vector<std::vector<std::string>> ways = {
      {"recompute.mode='block'"},
      {"recompute.mode='selective'", "recompute.pieces=['attention','mlp']"},
      {"frozen.ahead=true"}};
  for (size_t i = 0; i < ways.size(); ++i)
    CHECK(same_bits(one, run_threads(tiny_recipe(dir.path(), dropped(ways[i])),
                                     dir / ("way" + std::to_string(i)), 1)));
  for (const int64_t step : {2, 6}) {
    const auto run = dir / ("stopped" + std::to_string(step));
    run_threads(tiny_recipe(dir.path(), dropped()), run, 1, {.stop_after = step});
    CHECK(same_bits(one, run_threads(tiny_recipe(dir.path(), dropped()), run, 1)));
  }
}

TEST_CASE("dropout 0 is the run without the key to the bit; another share is another run") {
  TempDir dir;
  const std::vector<std::string> none{"lora.rank=2", "lora.alpha=8", "stage.1.lr.language=1e-2",
                                      "lora.dropout=0"};
  const Outcome plain = run_threads(tiny_recipe(dir.path(), kLora), dir / "plain", 1);
  CHECK(same_bits(plain, run_threads(tiny_recipe(dir.path(), none), dir / "none", 1)));
  std::vector<std::string> some = kLora;
  some.push_back("lora.dropout=0.2");
  const Outcome other = run_threads(tiny_recipe(dir.path(), some), dir / "some", 1);
  CHECK_FALSE(same_bits(plain, other));
  CHECK(other.records.back().loss < other.records.front().loss);
  for (const char* changed : {"lora.dropout=0.1", "lora.dropout=0"}) {
    std::vector<std::string> set = kLora;
    set.push_back(changed);
    CHECK_THROWS_WITH_AS(run_threads(tiny_recipe(dir.path(), set), dir / "some", 1),
                         doctest::Contains("lora"), mm::Error);
  }
  // It goes along to PEFT and back, and is no part of a merged model.
  namespace ckpt = mm::ckpt;
  ckpt::convert(ckpt::resolve_target(dir / "some"), dir / "peft",
                {.to = ckpt::ConvertOptions::To::kPeft});
  CHECK(ckpt::open_peft(dir / "peft").dropout == 0.2);
  ckpt::convert(ckpt::resolve_target(dir / "some"), dir / "own",
                {.to = ckpt::ConvertOptions::To::kOwn});
  ckpt::convert(ckpt::resolve_target(dir / "own"), dir / "peft2",
                {.to = ckpt::ConvertOptions::To::kPeft});
  CHECK(ckpt::open_peft(dir / "peft2").dropout == 0.2);
}

TEST_CASE("adapters: a start from a run without them draws them, from one with them needs them") {
  TempDir dir;
  const Outcome plain = run_threads(tiny_recipe(dir.path()), dir / "plain", 1);
  const std::string from = "init.from=" + (dir / "plain").string();
  const Outcome started = start_of(
      tiny_recipe(dir.path(), {from, "lora.rank=2", "stage.0.lr.language=0"}), dir / "started");
  for (const auto& [name, value] : plain.weights) CHECK(started.weights.at(name).equal(value));
  CHECK(run_threads(tiny_recipe(dir.path(), kLora), dir / "lora", 1).code == mm::ExitCode::kDone);
  CHECK_THROWS_WITH_AS(
      start_of(tiny_recipe(dir.path(), {"init.from=" + (dir / "lora").string()}), dir / "lost"),
      doctest::Contains("this recipe has not; merge it first"), mm::Error);
}

TEST_CASE("C49: a recipe fills the vocabulary tables up and adds rows; too few are one line") {
  TempDir dir;
  const Outcome filled =
      start_of(tiny_recipe(dir.path(), {"model.vocab_multiple=64"}), dir / "filled");
  CHECK(filled.weights.at("language_model.lm_head.weight").size(0) == 128);
  mm::ckpt::convert(mm::ckpt::resolve_target(dir / "filled"), dir / "cut", {});
  CHECK(
      mm::ckpt::HfWeights::open(dir / "cut").at("language_model.lm_head.weight").entry->shape[0] ==
      100);
  // The published model of 100 rows grows to 103, filled up to 104.
  const std::string from = "model.from=" + (dir / "cut").string();
  const std::filesystem::path text = dir / "text.toml";
  std::ofstream(text) << "[model]\nfrom = \"" << (dir / "cut").string() << R"("
vocab_rows = 103
vocab_multiple = 8
[precision]
compute = "float64"
[[stage]]
name = "a"
data = "data"
steps = 2
sequence_length = 24
packs_per_step = 4
lr = { vision = 0, projector = 0, language = 0 }
)";
  const Outcome grown = start_of(read_recipe(text, {}), dir / "grown");
  const at::Tensor table = grown.weights.at("language_model.model.embed_tokens.weight");
  REQUIRE(table.size(0) == 104);
  const at::Tensor old =
      filled.weights.at("language_model.model.embed_tokens.weight").narrow(0, 0, 100);
  CHECK(table.narrow(0, 0, 100).equal(old));
  CHECK(at::allclose(table[102], old.mean(0), 1e-12, 1e-14));
  mm::ckpt::convert(mm::ckpt::resolve_target(dir / "grown"), dir / "cut2", {});
  CHECK(
      mm::ckpt::HfWeights::open(dir / "cut2").at("language_model.lm_head.weight").entry->shape[0] ==
      103);
}
