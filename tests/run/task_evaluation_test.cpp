#include "lib/run/task_evaluation.h"

#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/model/score.h"
#include "lib/run/evaluation.h"
#include "tests/base/temp_dir.h"
#include "tests/run/toy_model.h"

using namespace mm;
using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;
using mm::test::message_of;

TEST_CASE("eval tasks: perplexity and retrieval are what scoring each answer on its own gives") {
  TempDir dir;
  const TrainedModel trained = trained_in(dir);
  const EvalSamples all = read_eval_samples(trained, packed(dir, "held", 20), 0);
  REQUIRE(all.size() == 20);
  double log_likelihood = 0;
  int64_t targets = 0;
  size_t first = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const data::Sample whole = all.whole(i);
    const auto scores = model::score_continuations(*trained.model, *trained.params,
                                                   prompt_batch(trained, {&whole}), all.truth_ids);
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
  const EvalSamples all = read_eval_samples(trained, packed(dir, "held", 6), 5);
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

TEST_CASE("eval samples: a conversation is a question a round, after the rounds before it") {
  TempDir dir;
  const TrainedModel trained = trained_in(dir);
  write_conversations(dir / "talk.jsonl",
                      {{"palette.png", {"<image>\nwhat is this", "a cat", "is that red", "no no"}},
                       {"gray.jpg", {"<image>\nis this a dog", "yes"}}});
  data::PackOptions options = data::test::toy_options(dir / "talk.jsonl");
  options.chat_template = "vicuna_v1";
  const auto set = packed(dir, "talk", options);
  const EvalSamples all = read_eval_samples(trained, set, 0);
  REQUIRE(all.size() == 3);
  const size_t talk = all.truths[0] == "yes" ? 1 : 0, other = talk == 1 ? 0 : 2;
  CHECK(all.keys[talk + 1] == all.keys[talk] + "/2");
  CHECK(all.truths[talk] == "a cat");
  CHECK(all.truths[talk + 1] == "no no");
  CHECK(all.truths[other] == "yes");
  CHECK(all.prompts[talk] == "what is this");
  CHECK(all.prompts[talk + 1] == "is that red");
  CHECK(all.prompts[other] == "is this a dog");
  const data::Sample whole = set->read(all.rows[talk]).value();
  int64_t targets = 0;
  for (size_t round = 0; round < 2; ++round) {
    const data::Sample sample = all.whole(talk + round);
    const data::TokenSpan answer = whole.text.trainable[round];
    REQUIRE(sample.text.trainable.size() == 1);
    CHECK(sample.text.trainable[0].begin == answer.begin);
    CHECK(sample.text.trainable[0].end == answer.end);
    CHECK(sample.text.tokens ==
          std::vector(whole.text.tokens.begin(), whole.text.tokens.begin() + answer.end));
    CHECK(sample.pixels == whole.pixels);
    targets += answer.end - answer.begin;
  }
  const Json perplexity =
      evaluate_tasks(trained, std::vector{EvalTask::kPerplexity}, {all, {}, {}})["perplexity"];
  CHECK(perplexity["targets"] == targets + static_cast<int64_t>(all.truth_ids[other].size()));
  CHECK(answers_to(trained, *trained.params, all, 4).size() == 3);
}

TEST_CASE("eval samples: pictures of later rounds are no part of an earlier question") {
  TempDir dir;
  const TrainedModel trained = trained_in(dir);
  write_file_atomic(dir / "two.jsonl",
                    Json{{"image", {"palette.png", "gray.jpg"}},
                         {"conversations",
                          {{{"from", "human"}, {"value", "<image>\nis this a cat"}},
                           {{"from", "gpt"}, {"value", "no"}},
                           {{"from", "human"}, {"value", "<image>\nis this a dog"}},
                           {{"from", "gpt"}, {"value", "yes"}}}}}
                            .dump() +
                        "\n");
  data::PackOptions options = data::test::toy_options(dir / "two.jsonl");
  options.chat_template = "vicuna_v1";
  const EvalSamples all = read_eval_samples(trained, packed(dir, "two", options), 0);
  REQUIRE(all.size() == 2);
  CHECK(all.whole(0).text.image_begin.size() == 1);
  CHECK(all.whole(0).pixels.size() == 8 * 8 * 3);
  CHECK(all.whole(1).pixels.size() == 2 * 8 * 8 * 3);
  CHECK(all.samples[1].pixels.empty());
  CHECK(answers_to(trained, *trained.params, all, 4).size() == 2);
}

TEST_CASE("eval samples: another picture size and a set of several pictures a sample are refused") {
  TempDir dir;
  const TrainedModel trained = trained_in(dir);
  const auto larger = packed(dir, "larger", 4, 16);
  const std::string message =
      message_of<UsageError>([&] { read_eval_samples(trained, larger, 0); });
  CHECK(message.find("of 16 pixels") != std::string::npos);
  CHECK(message.find("of 8") != std::string::npos);
  EvalSamples two = read_eval_samples(trained, packed(dir, "held", 2), 0);
  two.samples[1].text.image_begin.push_back(0);
  CHECK(message_of<DataError>([&] { check_one_picture(two); }).find("has 2 pictures") !=
        std::string::npos);
}
