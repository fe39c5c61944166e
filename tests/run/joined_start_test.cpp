#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/join.h"
#include "lib/model/hf_load.h"
#include "lib/model/initial_draw.h"
#include "tests/ckpt/two_directories.h"
#include "tests/run/tiny_run.h"

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
