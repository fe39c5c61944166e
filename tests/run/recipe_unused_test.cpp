// Keys that another key leaves without effect, and what stages inherit.
#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "lib/base/error.h"
#include "lib/run/recipe.h"

namespace fs = std::filesystem;
using namespace mm::run;

namespace {

constexpr const char* kLlava = R"(
[[stage]]
name = "all"
data = "d"
train = ["language"]
steps = 10
sequence_length = 64
packs_per_step = 2
lr = { language = 1e-3 }
)";

constexpr const char* kDit = R"(
[model]
family = "dit"
[[stage]]
name = "draw"
data = "d"
steps = 10
batch_pixels = 64
packs_per_step = 2
lr = { transformer = 1e-3 }
)";

constexpr const char* kVae = R"(
[model]
family = "vae"
[[stage]]
name = "rebuild"
data = "d"
steps = 10
batch_pixels = 64
packs_per_step = 2
lr = { vae = 1e-3 }
)";

using Keys = std::vector<std::string>;

Recipe read(const std::string& text, const Keys& set, RecipePaths paths = RecipePaths::kMustExist) {
  struct File {
    fs::path path =
        fs::temp_directory_path() / ("mm_recipe_unused_" + std::to_string(::getpid()) + ".toml");
    ~File() { fs::remove(path); }
  } const file;
  std::ofstream(file.path) << text;
  return read_recipe(file.path, set, paths);
}

std::string refusal(const std::string& text, const Keys& set = {}) {
  try {
    read(text, set);
  } catch (const mm::UsageError& error) {
    const std::string what = error.what();
    CHECK(what.find('\n') == std::string::npos);
    return what;
  }
  return "";
}

/// The recipe is refused for the last of `set`, and read where the run that left it is opened.
void check_unused(const std::string& text, const Keys& set, const std::string& key) {
  CAPTURE(set.back());
  const std::string what = refusal(text, set);
  CHECK_MESSAGE(what.starts_with("--set " + set.back() + ": " + key + ": has no effect "), what);
  CHECK_NOTHROW(read(text, set, RecipePaths::kOfRun));
}

/// Whatever their order.
bool same_keys(const mm::Json& a, const mm::Json& b) {
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key) || b.at(key) != value) return false;
  }
  return a.size() == b.size();
}

}  // namespace

TEST_CASE("read_recipe: adapters' keys have no effect without a rank, nor in other families") {
  for (const char* key : {"alpha=8", "dropout=0.1", "language=['q_proj']", "projector=['*']"}) {
    const std::string assignment = std::string("lora.") + key;
    check_unused(kLlava, {assignment}, assignment.substr(0, assignment.find('=')));
    CHECK(refusal(kLlava, {"lora.rank=4", assignment}).empty());
  }
  CHECK(refusal(kLlava, {"lora.alpha=0", "lora.dropout=0", "lora.language=['*']"}).empty());
  for (const char* other : {kDit, kVae}) {
    check_unused(other, {"lora.rank=4"}, "lora.rank");
    check_unused(other, {"lora.alpha=4"}, "lora.alpha");
  }
}

TEST_CASE("read_recipe: schedule, optimizer, recompute and loss scale without what they are of") {
  const auto schedule = [](const char* keys) { return std::string("stage.0.schedule=") + keys; };
  for (const char* keys : {"{kind='cosine',decay_steps=2}", "{decay_steps=2}"})
    CHECK(refusal(kLlava, {schedule(keys)}).find("decay_steps: has no effect with kind = \"cos") !=
          std::string::npos);
  check_unused(kLlava, {"stage.0.schedule.kind='constant'", "stage.0.schedule.min_ratio=0.1"},
               "stage.0.schedule.min_ratio");
  for (const char* keys : {"{kind='wsd',decay_steps=2,min_ratio=0.1}", "{min_ratio=0.1}",
                           "{kind='constant',decay_steps=0,min_ratio=0}"})
    CHECK(refusal(kLlava, {schedule(keys)}).empty());
  check_unused(kLlava, {"stage.0.optimizer='lion'", "stage.0.eps=1e-6"}, "stage.0.eps");
  CHECK(refusal(kLlava, {"stage.0.optimizer='lion'", "stage.0.eps=1e-8"}).empty());
  check_unused(kLlava, {"recompute.pieces=['attention']"}, "recompute.pieces");
  check_unused(kLlava, {"recompute.mode='block'", "recompute.pieces=['attention']"},
               "recompute.pieces");
  CHECK(refusal(kLlava, {"recompute.mode='selective'", "recompute.pieces=['attention']"}).empty());
  check_unused(kDit, {"recompute.mode='selective'"}, "recompute.mode");
  check_unused(kVae, {"recompute.mode='selective'"}, "recompute.mode");
  for (const char* key : {"precision.loss_scale=1024", "precision.loss_scale_growth_steps=9"}) {
    const std::string name = std::string(key).substr(0, std::string(key).find('='));
    check_unused(kLlava, {"precision.compute='bf16'", key}, name);
    CHECK(refusal(kLlava, {"precision.compute='fp16'", key}).empty());
    CHECK(refusal(kLlava, {"precision.vision='fp16'", key}).empty());
  }
}

TEST_CASE("read_recipe: a key without effect is named by file, line and column") {
  const std::string what = refusal(std::string("[lora]\nalpha = 16\n") + kLlava);
  CHECK(what.find(".toml:2:9: lora.alpha: has no effect without lora.rank") != std::string::npos);
}

TEST_CASE("read_recipe: a loss scale is a power of two, or is refused with the next one") {
  const Keys fp16{"precision.compute='fp16'"};
  for (const char* good : {"1024", "65536.0", "0.5", "1.1920928955078125e-07"})
    CHECK(read(kLlava, {fp16[0], std::string("precision.loss_scale=") + good}).loss_scale ==
          std::stod(good));
  const std::string what = refusal(kLlava, {fp16[0], "precision.loss_scale=1000"});
  CHECK(what ==
        "--set precision.loss_scale=1000: precision.loss_scale: 1000 is no power of two; expected "
        "one, such as 1024");
}

TEST_CASE("read_recipe: keys of one objective are refused in a recipe of another") {
  for (const char* predict : {"epsilon", "v"}) {
    for (const char* key : {"time_draw='mode'", "loss_weight='cosmap'", "shift=3"}) {
      const std::string assignment = std::string("diffusion.") + key;
      check_unused(kDit, {std::string("diffusion.predict=") + predict, assignment},
                   assignment.substr(0, assignment.find('=')));
      CHECK(refusal(kDit, {"diffusion.predict=flow", assignment}).empty());
    }
  }
  check_unused(kDit, {"diffusion.predict=flow", "diffusion.noise_schedule='cosine'"},
               "diffusion.noise_schedule");
  CHECK(refusal(kDit, {"diffusion.noise_schedule='cosine'"}).empty());
  CHECK(refusal(kDit, {"diffusion.predict=flow", "diffusion.min_snr_gamma=5"})
            .starts_with("--set diffusion.min_snr_gamma=5: diffusion.min_snr_gamma: only epsilon"));
  for (const char* other : {kDit, kVae}) {
    check_unused(other, {"model.vocab_rows=64"}, "model.vocab_rows");
    check_unused(other, {"model.vocab_multiple=64"}, "model.vocab_multiple");
    check_unused(other, {"stage.0.augment.token_drop=0.1"}, "stage.0.augment.token_drop");
  }
}

TEST_CASE("read_recipe: a grid is drawn in at most as many steps as the schedule has") {
  const auto steps = [](const Keys& more) {
    Keys set{"sample.every_steps=5"};
    set.insert(set.end(), more.begin(), more.end());
    return refusal(kDit, set);
  };
  CHECK(steps({"sample.steps=1000"}).empty());
  CHECK(steps({"sample.steps=1001"}) ==
        "--set sample.steps=1001: sample.steps: 1001 evaluations of diffusion.time_steps = 1000; "
        "expected 1 to 1000");
  CHECK(steps({"diffusion.predict=flow", "sample.steps=1001"}).empty());
  CHECK(steps({"diffusion.time_steps=30"}).find("sample.steps: 50 evaluations") !=
        std::string::npos);
  CHECK(steps({"diffusion.time_steps=30", "sample.sampler=dpm"}).empty());
}

TEST_CASE("read_recipe: a stage leaves the run's micro_mean by its reduction alone") {
  const Keys run{"loss.reduction=micro_mean", "loss.micro_packs=4"};
  const LossRecipe kept = read(kLlava, run).stages[0].loss;
  CHECK(kept == LossRecipe{"micro_mean", 4});
  const Recipe left = read(kLlava, {run[0], run[1], "stage.0.loss.reduction=global_token"});
  CHECK(left.stages[0].loss == LossRecipe{});
  CHECK(left.loss.micro_packs == 4);
  CHECK(read(kLlava, {run[0], run[1], "stage.0.loss.micro_packs=2"}).stages[0].loss ==
        LossRecipe{"micro_mean", 2});
  CHECK(refusal(kLlava, {run[0], "stage.0.loss={reduction='sqrt',micro_packs=2}"})
            .find("stage.0.loss.micro_packs: only reduction") != std::string::npos);
}

TEST_CASE("read_recipe: a loss of a diffusion run is refused where it stands, not in the stage") {
  const std::string table = std::string(kDit) + "[loss]\nreduction = \"sqrt\"\n";
  CHECK(refusal(table).find(": loss: is of vision-language models") != std::string::npos);
  CHECK(refusal(kDit, {"stage.0.loss.reduction=sqrt"}).find(": stage.0.loss: is of") !=
        std::string::npos);
}

TEST_CASE("contract_known_to: what a state's recipe said without effect is no difference") {
  const mm::Json now = resume_contract(read(kDit, {}));
  const auto was = [](const Keys& set) {
    return resume_contract(read(kDit, set, RecipePaths::kOfRun));
  };
  for (const Keys& set :
       {Keys{"diffusion.shift=3"}, Keys{"diffusion.time_draw='mode'"}, Keys{"lora.rank=4"},
        Keys{"diffusion.loss_weight='cosmap'", "model.vocab_rows=9"}}) {
    CAPTURE(set[0]);
    CHECK_FALSE(same_keys(was(set), now));
    CHECK(same_keys(contract_known_to(was(set), now), was(set)));
  }
  const mm::Json cosine = was({"diffusion.noise_schedule='cosine'"});
  CHECK_FALSE(same_keys(contract_known_to(cosine, now), cosine));
  const mm::Json flow = resume_contract(read(kDit, {"diffusion.predict=flow"})),
                 shifted = was({"diffusion.predict=flow", "diffusion.shift=3"}),
                 betas = was({"diffusion.predict=flow", "diffusion.noise_schedule='cosine'"});
  CHECK_FALSE(same_keys(contract_known_to(shifted, flow), shifted));
  CHECK(same_keys(contract_known_to(betas, flow), betas));
}
