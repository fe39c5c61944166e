#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/ckpt/convert.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/join.h"
#include "lib/data/dataset.h"
#include "lib/model/hf_load.h"
#include "lib/model/initial_draw.h"
#include "lib/run/hf_pictures.h"
#include "lib/run/run_recipe.h"
#include "tests/ckpt/two_directories.h"
#include "tests/run/tiny_run.h"
#include "tests/run/varied_sets.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;
namespace fs = std::filesystem;

namespace {

/// The directory of a first stage: a tower and a decoder whose next row is the data set's image
/// token.
fs::path make_start(const TempDir& dir) {
  const fs::path vision = mm::ckpt::test::write_clip(dir / "clip"),
                 language = mm::ckpt::test::write_language(dir / "llama", 6);
  mm::ckpt::join(vision, language, dir / "start", {});
  return dir / "start";
}

/// Stage 1: the projector alone. The data set's words beyond the joined table get rows.
Recipe first_stage(const TempDir& dir, const std::vector<std::string>& set = {}) {
  if (!fs::exists(dir / "data")) mm::data::test::write_tiny_dataset(dir / "data", 24);
  std::ofstream(dir / "stage1.toml") << R"(
[run]
seed = 5
log_every = 1000
[model]
from = "start"
vocab_rows = 100
[precision]
compute = "float64"
[[stage]]
name = "pretrain"
data = "data"
train = ["projector"]
steps = 4
sequence_length = 24
packs_per_step = 4
lr = { projector = 1e-2 }
)";
  return read_recipe(dir / "stage1.toml", set);
}

bool is_projector(const std::string& name) { return name.starts_with("multi_modal_projector."); }

mm::ckpt::TensorSource zeros(const std::string& name, const std::vector<std::byte>& bytes,
                             std::vector<uint64_t> shape) {
  return {.name = name,
          .dtype = mm::ckpt::DType::kF32,
          .shape = std::move(shape),
          .bytes = bytes,
          .stream = {}};
}

}  // namespace

TEST_CASE("a joined directory starts stage 1: stored weights stay, the drawn projector learns") {
  const TempDir dir;
  const fs::path start = make_start(dir);
  const Outcome done = run_threads(first_stage(dir), dir / "run", 1);
  CHECK(done.code == mm::ExitCode::kDone);
  REQUIRE(done.records.size() == 4);
  const Outcome drawn = run_threads(first_stage(dir, {"stage.0.lr.projector=0"}), dir / "drawn", 1);
  const mm::ckpt::HfWeights stored = mm::ckpt::HfWeights::open(start);
  size_t projector = 0;
  for (const auto& [name, value] : done.weights) {
    if (is_projector(name)) {
      ++projector;
      CHECK(stored.find(name) == nullptr);
      CHECK_FALSE_MESSAGE(value.equal(drawn.weights.at(name)), name);
      // Law 1: the one initialiser, from seed and name.
      const mm::model::ParamSpec spec{
          .name = name,
          .shape = value.sizes().vec(),
          .part = mm::model::Part::kProjector,
          .init = name.ends_with(".bias") ? mm::model::Init::kZeros : mm::model::Init::kNormal};
      const double first = drawn.weights.at(name).flatten()[0].item<double>();
      CHECK(first == doctest::Approx(mm::model::InitialDraw(spec, 5).at(0)).epsilon(1e-12));
      continue;
    }
    const mm::ckpt::HfTensor& tensor = stored.at(name);
    const at::Tensor expected =
        mm::model::to_tensor(*tensor.file, *tensor.entry).to(value.scalar_type());
    CHECK_MESSAGE(value.narrow(0, 0, expected.size(0)).equal(expected), name);
  }
  CHECK(projector == 4);
}

TEST_CASE("a joined directory gives the same run on one rank and on two") {
  const TempDir dir;
  make_start(dir);
  const Recipe recipe = first_stage(dir), frozen = first_stage(dir, {"stage.0.lr.projector=0"});
  const Outcome one = run_threads(recipe, dir / "one", 1);
  CHECK(weight_difference(one, run_threads(recipe, dir / "two", 2)) < 1e-9);
  CHECK(same_bits(run_threads(frozen, dir / "drawn1", 1), run_threads(frozen, dir / "drawn2", 2)));
}

TEST_CASE("half a projector, or any other tensor that is missing, is an error that names it") {
  const TempDir dir;
  const fs::path start = make_start(dir);
  const mm::ckpt::HfWeights whole = mm::ckpt::HfWeights::open(start);
  std::vector<std::vector<std::byte>> values;
  std::vector<mm::ckpt::TensorSource> tensors;
  for (const auto& [name, tensor] : whole.tensors()) values.push_back(tensor.read());
  for (const auto& [name, tensor] : whole.tensors())
    tensors.push_back(zeros(name, values[tensors.size()], tensor.entry->shape));
  const auto refused = [&](const std::vector<mm::ckpt::TensorSource>& stored,
                           const std::string& missing) {
    mm::ckpt::write_safetensors(start / "model.safetensors", stored);
    CHECK_THROWS_WITH_AS(run_threads(first_stage(dir), dir / "refused", 1),
                         doctest::Contains(missing.c_str()), mm::Error);
  };
  std::vector<mm::ckpt::TensorSource> half = tensors;
  const std::vector<std::byte> bytes = mm::ckpt::test::floats(std::vector<float>(16 * 8));
  half.push_back(zeros("multi_modal_projector.linear_1.weight", bytes, {16, 8}));
  refused(half, "first multi_modal_projector.linear_1.bias");
  std::vector<mm::ckpt::TensorSource> other = tensors;
  std::erase_if(other,
                [](const auto& tensor) { return tensor.name.ends_with("model.norm.weight"); });
  refused(other, "first language_model.model.norm.weight");
}

TEST_CASE("a joined directory's projector is drawn as model.init and model.projector say") {
  const TempDir dir;
  make_start(dir);
  const Outcome done = run_threads(
      first_stage(dir, {"model.init='fan_in'", "model.projector='linear'"}), dir / "run", 1);
  const std::string name = "multi_modal_projector.linear.weight";
  REQUIRE(done.weights.contains(name));
  CHECK_FALSE(done.weights.contains("multi_modal_projector.linear_1.weight"));
  const Outcome drawn = run_threads(
      first_stage(dir,
                  {"model.init='fan_in'", "model.projector='linear'", "stage.0.lr.projector=0"}),
      dir / "drawn", 1);
  const mm::model::ParamSpec spec{.name = name,
                                  .shape = {16, 8},
                                  .part = mm::model::Part::kProjector,
                                  .init_std = 1 / std::sqrt(8.0)};
  CHECK(drawn.weights.at(name).flatten()[0].item<double>() ==
        doctest::Approx(mm::model::InitialDraw(spec, 5).at(0)).epsilon(1e-12));
  // Its export holds a projector: of that kind it goes on, another one is refused.
  mm::ckpt::convert(mm::ckpt::resolve_target(dir / "run"), dir / "hf", {});
  const mm::model::LoadedLlava loaded = mm::model::load_llava(dir / "hf");
  CHECK(loaded.config.projector == mm::model::ProjectorKind::kLinear);
  const std::vector<std::string> next{"model.from='" + (dir / "hf").string() + "'",
                                      "stage.0.lr.projector=0"};
  const Outcome begun = run_threads(first_stage(dir, next), dir / "begun", 1);
  CHECK(begun.weights.at(name).equal(done.weights.at(name)));
  std::vector<std::string> other = next;
  other.emplace_back("model.projector='mlp2x_gelu'");
  CHECK_THROWS_WITH_AS(run_threads(first_stage(dir, other), dir / "other", 1),
                       doctest::Contains("model.projector is mlp2x_gelu, "), mm::Error);
}

namespace {

/// A recipe on tiles from DIR/`from`, which may be a directory of one tile a picture.
Recipe tiled_stage(const TempDir& dir, const std::string& from) {
  mm::write_file_atomic(dir / "tiles.toml", R"(
[run]
seed = 5
log_every = 1000
[model]
family = "llava_next"
from = ")" + from + R"("
[precision]
compute = "float64"
[[stage]]
name = "all"
data = "data"
steps = 1
sequence_length = 220
packs_per_step = 4
lr = { vision = 0, projector = 0, language = 0 }
)");
  return read_recipe(dir / "tiles.toml", {});
}

}  // namespace

TEST_CASE("LLaVA-NeXT starts from a first stage's export: tiles come, the newline is drawn") {
  const TempDir dir;
  pack_varied(dir, [](mm::data::PictureOptions& pictures) {
    anyres(pictures);
    pictures.side = 4;
    pictures.patch = 2;
  });
  const fs::path vision = mm::ckpt::test::write_clip(dir / "clip"),
                 language = mm::ckpt::test::write_language(dir / "llama", 20);
  mm::ckpt::join(vision, language, dir / "joined", {.image_token = 6, .family = "llava_next"});
  const Outcome joined = run_threads(tiled_stage(dir, "joined"), dir / "one", 1);
  const at::Tensor newline = joined.weights.at("image_newline");
  const mm::model::ParamSpec spec{.name = "image_newline",
                                  .shape = {16},
                                  .part = mm::model::Part::kProjector,
                                  .init_std = 0.25};  // 1 / sqrt(width)
  CHECK(newline[3].item<double>() ==
        doctest::Approx(mm::model::InitialDraw(spec, 5).at(3)).epsilon(1e-12));
  // The same weights as a directory of one tile a picture, without the newline.
  mm::ckpt::convert(mm::ckpt::resolve_target(dir / "one"), dir / "stage1", {});
  const mm::ckpt::HfWeights whole = mm::ckpt::HfWeights::open(dir / "stage1");
  std::vector<std::vector<std::byte>> values;
  std::vector<mm::ckpt::TensorSource> tensors;
  for (const auto& [name, tensor] : whole.tensors()) values.push_back(tensor.read());
  size_t at = 0;
  for (const auto& [name, tensor] : whole.tensors()) {
    const std::vector<std::byte>& bytes = values[at++];
    if (name == "image_newline") continue;
    tensors.push_back({.name = name,
                       .dtype = tensor.entry->dtype,
                       .shape = tensor.entry->shape,
                       .bytes = bytes,
                       .stream = {}});
  }
  mm::Json config = mm::read_json_file(dir / "stage1/config.json");
  config["model_type"] = "llava";
  config.erase("image_grid_pinpoints");
  fs::create_directories(dir / "llava");
  mm::ckpt::write_safetensors(dir / "llava/model.safetensors", tensors);
  mm::write_file_atomic(dir / "llava/config.json", config.dump());
  mm::write_file_atomic(dir / "llava/preprocessor_config.json",
                        R"({"size": 4, "crop_size": 4, "processor_class": "LlavaProcessor"})");
  const Outcome begun = run_threads(tiled_stage(dir, "llava"), dir / "two", 1);
  CHECK(same_bits(joined, begun));
  CHECK(mm::read_json_file(dir / "two/hf/processor_config.json")["processor_class"] ==
        "LlavaNextProcessor");
  CHECK(read_hf_pictures(dir / "two/hf").geometry == "anyres");
}

TEST_CASE("pictures are normalised as model.from's, a run of before keeps the numbers it has") {
  const TempDir dir;
  const fs::path start = make_start(dir);
  const auto settings = [&](const char* numbers) {
    mm::write_file_atomic(start / "preprocessor_config.json",
                          std::string(R"({"crop_size": 4, "resample": 3)") + numbers + "}");
  };
  settings("");
  const Recipe before = first_stage(dir);
  run_threads(before, dir / "run", 1, {.stop_after = 2});
  settings(R"(, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5])");
  const Recipe now = first_stage(dir);
  CHECK(resume_contract(now) != resume_contract(before));
  CHECK(normalisation_warning(now.model).empty());
  const fs::path path = dir / "stage1.toml";
  CHECK(resume_contract(read_run_recipe(path, {}, dir / "fresh")) == resume_contract(now));
  const Recipe kept = read_run_recipe(path, {}, dir / "run");
  CHECK(resume_contract(kept) == resume_contract(before));
  const std::string warning = normalisation_warning(kept.model);
  CHECK(warning.find("was trained with [0.5, 0.5, 0.5]") != std::string::npos);
  CHECK(run_threads(kept, dir / "run", 1).records.size() == 2);
  // A new run learns otherwise, and its export says from which pictures.
  const Outcome fresh = run_threads(now, dir / "new", 1);
  CHECK(weight_difference(fresh, run_threads(before, dir / "old", 1)) > 1e-6);
  CHECK(read_hf_pictures(dir / "new/hf").mean == std::vector<double>(3, 0.5));
}

TEST_CASE("an export's preprocessor_config.json has what the run trained with") {
  const TempDir dir;
  const fs::path start = make_start(dir);
  const std::string stated =
      R"({"crop_size": 4, "do_pad": true, "image_mean": [0.5, 0.5, 0.5], "kept": 1})";
  mm::write_file_atomic(start / "preprocessor_config.json", stated);
  run_threads(first_stage(dir, {"model.image_mean=[0.25, 0.25, 0.25]"}), dir / "run", 1,
              {.stop_after = 1});
  const mm::Json written = mm::read_json_file(dir / "run/hf/preprocessor_config.json");
  CHECK(written["image_mean"] == mm::Json{0.25, 0.25, 0.25});
  CHECK(written["kept"] == 1);
  const HfPictures pictures = read_hf_pictures(dir / "run/hf");
  CHECK(pictures.geometry == mm::data::Dataset::open(dir / "data")->manifest().pictures.geometry);
  CHECK(pictures.side == 4);
  // Where nothing differs the file is the directory's.
  mm::write_file_atomic(start / "preprocessor_config.json",
                        mm::read_file(dir / "run/hf/preprocessor_config.json"));
  run_threads(first_stage(dir), dir / "same", 1, {.stop_after = 1});
  CHECK(mm::read_file(dir / "same/hf/preprocessor_config.json") ==
        mm::read_file(start / "preprocessor_config.json"));
}
