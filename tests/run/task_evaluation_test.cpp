#include "lib/run/task_evaluation.h"

#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/model/score.h"
#include "lib/run/evaluation.h"
#include "tests/base/temp_dir.h"
#include "tests/data/toy_source.h"
#include "tests/run/tiny_run.h"

using namespace mm;
using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;
using mm::test::message_of;

namespace {

std::unique_ptr<data::Dataset> packed(const TempDir& dir, const std::string& name, uint32_t rows,
                                      int32_t side = 8) {
  data::test::write_jsonl(dir / (name + ".jsonl"), data::test::good_rows(rows));
  data::PackOptions options = data::test::toy_options(dir / (name + ".jsonl"));
  options.pictures.side = side;
  data::pack_dataset(options, {.output = dir / name});
  return data::Dataset::open(dir / name);
}

/// A run of two steps on pictures of 8 pixels.
TrainedModel trained_in(const TempDir& dir) {
  packed(dir, "data", 12);
  write_file_atomic(dir / "recipe.toml", R"(
[run]
seed = 5
log_every = 1000
[model.vision]
hidden = 8
layers = 2
heads = 2
patch = 4
image_side = 8
[model.language]
hidden = 16
layers = 2
heads = 4
kv_heads = 2
mlp = 24
[[stage]]
name = "all"
data = "data"
steps = 2
sequence_length = 64
packs_per_step = 2
lr = { vision = 1e-2, projector = 1e-2, language = 1e-2 }
)");
  run_threads(read_recipe(dir / "recipe.toml", {}), dir / "run", 1);
  return open_trained(dir / "run");
}

}  // namespace

TEST_CASE("eval tasks: perplexity and retrieval are what scoring each answer on its own gives") {
  TempDir dir;
  const TrainedModel trained = trained_in(dir);
  const EvalSamples all = read_eval_samples(trained, *packed(dir, "held", 20), 0);
  REQUIRE(all.size() == 20);
  double log_likelihood = 0;
  int64_t targets = 0;
  size_t first = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto scores = model::score_continuations(
        *trained.model, *trained.params, prompt_batch(trained, {&all.samples[i]}), all.truth_ids);
    log_likelihood += scores[i].log_likelihood;
    targets += scores[i].tokens;
    bool best = true;
    for (const auto& other : scores) best = best && other.per_token() <= scores[i].per_token();
    first += best ? 1 : 0;
  }
  const Json figures = evaluate_tasks(
      trained, std::vector{EvalTask::kPerplexity, EvalTask::kRetrieval}, {all, {}, {}});
  CHECK(figures["perplexity"]["targets"] == targets);
  const double loss = figures["perplexity"]["loss"];
  CHECK(loss == doctest::Approx(-log_likelihood / static_cast<double>(targets)).epsilon(1e-5));
  CHECK(figures["perplexity"]["perplexity"].get<double>() == doctest::Approx(std::exp(loss)));
  CHECK(figures["retrieval"]["picture_to_text"]["recall_at_1"].get<double>() ==
        doctest::Approx(static_cast<double>(first) / 20));
  CHECK(figures["retrieval"]["text_to_picture"]["mean_rank"].get<double>() >= 1);
}

TEST_CASE("eval tasks: the same answers serve names, captions and the answer file") {
  TempDir dir;
  const TrainedModel trained = trained_in(dir);
  const EvalSamples all = read_eval_samples(trained, *packed(dir, "held", 6), 5);
  REQUIRE(all.size() == 5);
  const std::vector<std::string> answers = answers_to(trained, *trained.params, all, 8);
  const EvalResult names = evaluate_names(trained, all, answers, 8);
  REQUIRE(names.pictures.size() == 5);
  const auto samples = answered_samples({all, answers, {}});
  for (size_t i = 0; i < 5; ++i) {
    CHECK(names.pictures[i].outcome.guess == samples[i].answer);
    CHECK(names.pictures[i].outcome.truth == samples[i].truth);
    CHECK(samples[i].prompt.find("<image>") == std::string::npos);
  }
  const Json figures =
      evaluate_tasks(trained, std::vector{EvalTask::kCaptions}, {all, answers, {}});
  CHECK(figures["captions"] == score_task(EvalTask::kCaptions, samples, {}));
  CHECK(names.data == (dir / "held").string());
}

TEST_CASE("eval samples: another picture size and a set of several pictures a sample are refused") {
  TempDir dir;
  const TrainedModel trained = trained_in(dir);
  const auto larger = packed(dir, "larger", 4, 16);
  const std::string message =
      message_of<UsageError>([&] { read_eval_samples(trained, *larger, 0); });
  CHECK(message.find("of 16 pixels") != std::string::npos);
  CHECK(message.find("of 8") != std::string::npos);
  EvalSamples two = read_eval_samples(trained, *packed(dir, "held", 2), 0);
  two.samples[1].text.image_begin.push_back(0);
  CHECK(message_of<DataError>([&] { check_one_picture(two); }).find("has 2 pictures") !=
        std::string::npos);
}
