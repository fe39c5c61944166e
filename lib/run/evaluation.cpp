#include "lib/run/evaluation.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/progress.h"
#include "lib/run/picture_bytes.h"

namespace mm::run {
namespace {

/// The trained model before a white picture: it can only say what the names have in common, so one
/// pass serves all.
std::vector<NamedPicture> ask_blank(const TrainedModel& trained, const EvalSamples& all,
                                    int64_t max_new_tokens) {
  data::Sample blank = all.whole(0);
  std::fill(blank.pixels.begin(), blank.pixels.end(), uint8_t{255});
  const std::string guess = answer(trained, *trained.params, {&blank}, max_new_tokens).front();
  const std::vector<double> scores = truth_scores(trained, *trained.params, all, blank);
  std::vector<NamedPicture> outcomes;
  for (size_t i = 0; i < all.truths.size(); ++i)
    outcomes.push_back({all.truths[i], guess, rank_of(scores, i)});
  return outcomes;
}

}  // namespace

std::vector<NamedPicture> name_pictures(const TrainedModel& trained, const model::ParamView& params,
                                        const EvalSamples& all,
                                        const std::vector<std::string>& answers,
                                        const std::string& label) {
  Progress progress({.label = "ranking names, " + label,
                     .unit = "pictures",
                     .total = static_cast<int64_t>(all.size())});
  std::vector<NamedPicture> outcomes;
  for (size_t i = 0; i < all.size(); ++i) {
    outcomes.push_back(
        {all.truths[i], answers[i], rank_of(truth_scores(trained, params, all, all.whole(i)), i)});
    progress.add(1);
  }
  progress.finish();
  return outcomes;
}

std::string picture_data_uri(const TrainedModel& trained, const data::Sample& sample) {
  image::Image picture;
  picture.width = picture.height = static_cast<int32_t>(trained.config.vision.image_size);
  if (!sample.grids.empty())
    picture.width = sample.grids.front().width, picture.height = sample.grids.front().height;
  const auto bytes = ptrdiff_t{3} * picture.width * picture.height;
  MM_CHECK(std::ssize(sample.pixels) >= bytes, "{} bytes of pixels for {} x {}",
           sample.pixels.size(), picture.width, picture.height);
  picture.rgb.assign(sample.pixels.begin(), sample.pixels.begin() + bytes);
  return png_data_uri(picture);
}

EvalResult evaluate_names(const TrainedModel& trained, const EvalSamples& all,
                          const std::vector<std::string>& answers, int64_t max_new_tokens) {
  check_one_picture(all);
  EvalResult result{.data = all.origin, .step = trained.step};
  const std::vector<NamedPicture> outcomes =
      name_pictures(trained, *trained.params, all, answers, "trained");
  result.rows.push_back({"trained", score_names(outcomes)});
  if (trained.step > 0) {  // what a published model began with is not known
    const model::SimpleParams untrained = trained.untrained();
    result.rows.push_back(
        {"untrained", score_names(name_pictures(trained, untrained, all,
                                                answers_to(trained, untrained, all, max_new_tokens),
                                                "untrained"))});
  }
  result.rows.push_back(
      {"trained, blank picture", score_names(ask_blank(trained, all, max_new_tokens))});
  for (size_t i = 0; i < outcomes.size(); ++i)
    result.pictures.push_back({all.keys[i], outcomes[i], picture_data_uri(trained, all.whole(i))});
  return result;
}

}  // namespace mm::run
