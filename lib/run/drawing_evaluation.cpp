#include "lib/run/drawing_evaluation.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/progress.h"
#include "lib/image/resize.h"
#include "lib/run/evaluation.h"

namespace mm::run {
namespace {

/// Pictures as the judge takes them, in the samples' places.
EvalSamples with_pictures(EvalSamples samples, const std::vector<image::Image>& pictures,
                          int32_t side) {
  for (size_t i = 0; i < samples.size(); ++i) {
    const image::Image sized = image::resize(pictures[i], {side, side}, image::Filter::kBicubic);
    samples.samples[i].pixels.assign(sized.rgb.begin(), sized.rgb.end());
  }
  return samples;
}

image::Image picture_of(const data::Sample& sample, int32_t side) {
  image::Image picture(side, side);
  MM_CHECK(sample.pixels.size() >= picture.rgb.size(), "{} bytes of pixels for {} x {}",
           sample.pixels.size(), side, side);
  std::copy_n(sample.pixels.begin(), picture.rgb.size(), picture.rgb.begin());
  return picture;
}

/// The real pictures as coarse as the drawn ones are.
std::vector<image::Image> real_pictures(const EvalSamples& names, int32_t side,
                                        data::BucketShape size) {
  std::vector<image::Image> pictures;
  for (size_t i = 0; i < names.size(); ++i)
    pictures.push_back(image::resize(picture_of(names.whole(i), side), {size.width, size.height},
                                     image::Filter::kBicubic));
  return pictures;
}

/// Mean of each picture's features over its patches: [pictures, D].
at::Tensor features_of(const TrainedModel& judge, const EvalSamples& samples) {
  const model::Slot slot = model::find_slot(*judge.model, "features");
  std::vector<at::Tensor> rows;
  for (const data::Sample& sample : samples.samples) {
    const model::SlotValues values =
        model::eager_forward(*judge.model, *judge.params, prompt_batch(judge, {&sample}));
    rows.push_back(values.at(static_cast<size_t>(slot)).to(at::kDouble).mean(0));
  }
  return at::stack(rows);
}

/// What the judge says about one set of pictures.
struct Judged {
  std::vector<std::string> answers;
  std::vector<std::vector<double>> scores;  ///< of each picture, for each name
  at::Tensor features;
};

Judged judge_pictures(const TrainedModel& judge, const EvalSamples& samples,
                      const std::string& label, int64_t max_new_tokens) {
  Judged judged{.answers = answers_to(judge, *judge.params, samples, max_new_tokens)};
  Progress progress({.label = "ranking names, " + label,
                     .unit = "pictures",
                     .total = static_cast<int64_t>(samples.size())});
  for (const data::Sample& sample : samples.samples) {
    judged.scores.push_back(truth_scores(judge, *judge.params, samples, sample));
    progress.add(1);
  }
  progress.finish();
  judged.features = features_of(judge, samples);
  return judged;
}

/// Each name with the picture `shift` places behind its own.
std::vector<NamedPicture> outcomes(const EvalSamples& names, const Judged& judged, size_t shift) {
  std::vector<NamedPicture> all;
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t picture = (i + shift) % names.size();
    all.push_back({names.truths[i], judged.answers[picture], rank_of(judged.scores[picture], i)});
  }
  return all;
}

at::Tensor covariance(const at::Tensor& rows, const at::Tensor& mean) {
  const at::Tensor centred = rows - mean;
  return centred.t().matmul(centred) / static_cast<double>(rows.size(0) - 1);
}

/// Square root of a symmetric matrix without negative eigenvalues (but for rounding).
at::Tensor matrix_root(const at::Tensor& matrix) {
  const auto [values, vectors] = at::linalg_eigh(matrix);
  return (vectors * values.clamp_min(0).sqrt()).matmul(vectors.t());
}

}  // namespace

double frechet_distance(const at::Tensor& a, const at::Tensor& b) {
  MM_CHECK(a.size(0) >= 2 && b.size(0) >= 2, "{} and {} rows have no covariance", a.size(0),
           b.size(0));
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  const at::Tensor mean_x = x.mean(0), mean_y = y.mean(0);
  const at::Tensor cx = covariance(x, mean_x), cy = covariance(y, mean_y);
  // (Cx Cy)^(1/2) has the trace of the symmetric (Cx^(1/2) Cy Cx^(1/2))^(1/2).
  const at::Tensor root = matrix_root(cx);
  const at::Tensor cross = root.matmul(cy).matmul(root);
  const at::Tensor trace = at::linalg_eigvalsh((cross + cross.t()) / 2).clamp_min(0).sqrt().sum();
  const at::Tensor distance =
      (mean_x - mean_y).square().sum() + cx.trace() + cy.trace() - 2 * trace;
  return std::max(0.0, distance.item<double>());
}

EvalResult evaluate_drawings(const TrainedDiffusion& trained, const TrainedModel& judge,
                             const EvalSamples& names, const DrawOptions& options,
                             int64_t max_new_tokens) {
  check_one_picture(names);
  if (names.size() < 2)
    throw UsageError("{}: one name; a comparison takes two at least", names.origin);
  const auto side = static_cast<int32_t>(judge.config.vision.image_size);
  std::vector<Condition> conditions;
  for (const std::string& name : names.truths)
    conditions.push_back(caption_condition(trained, name));
  log::info("run", "drawing held-out names", {{"pictures", 2 * names.size()}});
  const EvalSamples drawn =
      with_pictures(names, draw_pictures(trained, *trained.params, conditions, options), side);
  const EvalSamples blank =
      with_pictures(names, draw_pictures(trained, trained.untrained(), conditions, options), side);
  const EvalSamples real = with_pictures(names, real_pictures(names, side, options.size), side);

  const Judged of_drawn = judge_pictures(judge, drawn, "drawn", max_new_tokens);
  const Judged of_blank = judge_pictures(judge, blank, "untrained", max_new_tokens);
  const Judged of_real = judge_pictures(judge, real, "real", max_new_tokens);
  const std::vector<NamedPicture> named = outcomes(names, of_drawn, 0);
  EvalResult result{.data = names.origin, .step = trained.step};
  result.rows = {
      {"drawn", score_names(named)},
      {"drawn, another's name", score_names(outcomes(names, of_drawn, names.size() / 2))},
      {"drawn by untrained weights", score_names(outcomes(names, of_blank, 0))},
      {"real, at this size", score_names(outcomes(names, of_real, 0))}};
  result.tasks["frechet"] = {
      {"features", "mean vision features of " + judge.run.filename().string()},
      {"drawn", frechet_distance(of_drawn.features, of_real.features)},
      {"untrained", frechet_distance(of_blank.features, of_real.features)}};
  for (size_t i = 0; i < names.size(); ++i)
    result.pictures.push_back({names.keys[i], named[i], picture_data_uri(judge, drawn.samples[i]),
                               picture_data_uri(judge, real.samples[i])});
  return result;
}

}  // namespace mm::run
