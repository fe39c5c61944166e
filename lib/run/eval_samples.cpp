#include "lib/run/eval_samples.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/model/score.h"
#include "lib/run/user_turn.h"

namespace mm::run {
namespace {

/// Of "qwen", whose pictures have no common side, tokens a picture and so sides do not compare.
bool same_pictures(const data::DatasetManifest& a, const data::DatasetManifest& b) {
  const data::PictureEntry &p = a.pictures, &q = b.pictures;
  if (p.varied != q.varied || p.patch != q.patch) return false;
  if (p.geometry != "qwen" || q.geometry != "qwen")
    return p.side == q.side && (p.varied || p.patches == q.patches);
  const auto merge = [](const data::DatasetManifest& set) {
    return set.options.contains("pictures") ? set.options.at("pictures").value("merge", 1) : 1;
  };
  return merge(a) == merge(b);
}

void check_same_preparation(const TrainedModel& trained, const data::Dataset& set) {
  const data::DatasetManifest &these = set.manifest(), &known = trained.data;
  if (these.tokenizer.file.xxh3_128 != known.tokenizer.file.xxh3_128) {
    throw UsageError("{}: packed with another tokenizer than {} was trained with; expected its {}",
                     set.directory().string(), trained.run.string(), known.tokenizer.file.file);
  }
  if (these.counts.images == 0) return;  // a set of texts alone fits every model
  if (!same_pictures(these, known)) {
    throw UsageError("{}: pictures by \"{}\" of {} pixels, {} was trained on \"{}\" of {}",
                     set.directory().string(), these.pictures.geometry, these.pictures.side,
                     trained.run.string(), known.pictures.geometry, known.pictures.side);
  }
  if (these.tokenizer.image_token_id != trained.config.image_token_index)
    throw UsageError("{}: pictures stand as token {}, {} reads token {}; pack with its template",
                     set.directory().string(), these.tokenizer.image_token_id, trained.run.string(),
                     trained.config.image_token_index);
}

/// The text up to the end of its answer `round`, which alone is trainable.
data::SampleText round_of(const data::SampleText& text, size_t round) {
  const data::TokenSpan answer = text.trainable[round];
  data::SampleText cut{.tokens = {text.tokens.begin(), text.tokens.begin() + answer.end},
                       .trainable = {answer}};
  for (const uint32_t begin : text.image_begin) {
    if (begin < answer.begin) cut.image_begin.push_back(begin);
  }
  return cut;
}

/// Adds the rounds of conversations to the samples.
class RoundReader {
 public:
  RoundReader(const TrainedModel& trained, EvalSamples& all)
      : trained_(trained),
        chat_(
            text::find_template(all.set->manifest().chat_template).value_or(text::ChatTemplate{})),
        all_(all) {}

  void add(uint64_t row, const data::Sample& sample) {
    const size_t rounds = sample.text.trainable.size();
    if (rounds == 0)
      log::warn("run", "sample has no answer and is left out", {{"sample", all_.set->key(row)}});
    for (size_t round = 0; round < rounds; ++round) add_round(row, sample, round);
  }

 private:
  void add_round(uint64_t row, const data::Sample& sample, size_t round) {
    data::SampleText text = round_of(sample.text, round);
    const data::TokenSpan answer = text.trainable.front();
    const uint32_t begin = round == 0 ? 0 : sample.text.trainable[round - 1].end;
    std::vector<int32_t> asked;
    for (uint32_t i = begin; i < answer.begin; ++i) {
      if (text.tokens[i] != trained_.config.image_token_index) asked.push_back(text.tokens[i]);
    }
    const std::vector<int32_t> ids(text.tokens.begin() + answer.begin, text.tokens.end());
    const std::string key(all_.set->key(row));
    all_.keys.push_back(round == 0 ? key : fmt::format("{}/{}", key, round + 1));
    all_.prompts.push_back(user_turn(asked, chat_, *trained_.tokenizer));
    all_.truths.push_back(trained_.tokenizer->decode(ids));
    all_.truth_ids.emplace_back(ids.begin(), ids.end());
    all_.rows.push_back(row);
    const size_t pictures = text.image_begin.size();
    data::Sample& added = all_.samples.emplace_back(data::Sample{.text = std::move(text)});
    if (!sample.grids.empty())
      added.grids.assign(sample.grids.begin(),
                         sample.grids.begin() + static_cast<ptrdiff_t>(pictures));
  }

  const TrainedModel& trained_;
  const text::ChatTemplate chat_;
  EvalSamples& all_;
};

/// Bytes of the first `pictures` of a stored sample.
size_t pixel_bytes(const data::Sample& stored, size_t pictures) {
  if (stored.grids.empty()) return stored.pixels.size() / stored.text.image_begin.size() * pictures;
  size_t bytes = 0;
  for (size_t i = 0; i < pictures; ++i) bytes += stored.grids[i].pixel_bytes();
  return bytes;
}

data::Sample read_row(const data::Dataset& set, uint64_t row) {
  Result<data::Sample> sample = set.read(row);
  if (!sample) throw DataError("{}: {}", set.directory().string(), sample.failure().message);
  return std::move(*sample);
}

}  // namespace

data::Sample EvalSamples::whole(size_t i) const {
  data::Sample sample = samples[i];
  const size_t pictures = sample.text.image_begin.size();
  if (!sample.pixels.empty() || pictures == 0) return sample;
  data::Sample stored = read_row(*set, rows[i]);
  stored.pixels.resize(pixel_bytes(stored, pictures));
  sample.pixels = std::move(stored.pixels);
  return sample;
}

EvalSamples read_eval_samples(const TrainedModel& trained, std::shared_ptr<const data::Dataset> set,
                              int64_t limit) {
  check_same_preparation(trained, *set);
  EvalSamples all{.origin = set->directory().string(), .set = std::move(set)};
  if (all.set->rows() == 0) throw DataError("{}: no sample in it", all.origin);
  const uint64_t rows = limit > 0
                            ? std::min<uint64_t>(all.set->rows(), static_cast<uint64_t>(limit))
                            : all.set->rows();
  RoundReader reader(trained, all);
  for (uint64_t row = 0; row < rows; ++row) reader.add(row, read_row(*all.set, row));
  if (all.size() == 0) throw DataError("{}: no sample has an answer", all.origin);
  return all;
}

void check_one_picture(const EvalSamples& all) {
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t pictures = all.samples[i].text.image_begin.size();
    if (pictures != 1)
      throw DataError("{}: sample {} has {} pictures; expected one", all.origin, all.keys[i],
                      pictures);
  }
}

std::vector<std::string> answers_to(const TrainedModel& trained, const model::ParamView& params,
                                    const EvalSamples& all, int64_t max_new_tokens) {
  constexpr size_t kHeld = 50;  // samples whose pixels are in memory
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < all.size(); begin += kHeld) {
    std::vector<data::Sample> some;
    std::vector<const data::Sample*> prompts;
    for (size_t i = begin; i < std::min(all.size(), begin + kHeld); ++i)
      some.push_back(all.whole(i));
    for (const data::Sample& sample : some) prompts.push_back(&sample);
    for (std::string& text : answer(trained, params, prompts, max_new_tokens))
      texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<double> truth_scores(const TrainedModel& trained, const model::ParamView& params,
                                 const EvalSamples& all, const data::Sample& picture) {
  std::vector<double> scores;
  for (const model::ContinuationScore& score : model::score_continuations(
           *trained.model, params, prompt_batch(trained, {&picture}), all.truth_ids))
    scores.push_back(score.per_token());
  return scores;
}

}  // namespace mm::run
