#include "lib/run/frozen_encoders.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/data/json_fields.h"

namespace mm::run {

EncoderPaths encoder_paths(const ModelRecipe& model) {
  return {.vae = model.vae, .text = model.text_models, .text_padding = model.text_padding};
}

EncoderPaths encoder_options(const Json& options) {
  EncoderPaths paths{.vae = options.at("vae").get<std::string>(),
                     .text_padding = options.at("text_padding")};
  for (const Json& text : options.at("text_encoders"))
    paths.text.push_back(text.get<std::string>());
  if (paths.text_padding >= 0 && paths.text.empty())
    throw UsageError("--text-padding: of --text-encoder, and none is given; leave it out");
  if (paths.text_padding < 0) paths.text_padding = paths.text.size() > 1 ? 77 : 0;
  return paths;
}

std::shared_ptr<const Encoders> load_encoders(const EncoderPaths& paths,
                                              const std::filesystem::path& tokenizer,
                                              at::ScalarType dtype) {
  auto encoders = std::make_shared<Encoders>();
  if (!paths.vae.empty()) {
    const model::LoadedVae loaded = model::load_vae(paths.vae);
    encoders->vae = std::make_unique<model::Vae>(loaded.config, loaded.values, dtype);
  }
  if (!paths.text.empty())
    encoders->text =
        std::make_unique<CaptionEncoders>(paths.text, paths.text_padding, tokenizer, dtype);
  return encoders;
}

at::Tensor mean_and_deviation(const model::Vae& vae, const at::Tensor& pictures, int64_t at_once) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> all;
  const int64_t count = pictures.size(0),
                step = at_once > 0 ? at_once : std::max<int64_t>(1, count);
  for (int64_t first = 0; first < count; first += step) {
    const model::Posterior q =
        model::posterior_of(vae.moments(pictures.narrow(0, first, std::min(step, count - first))));
    all.push_back(at::cat({q.mean, (q.log_variance * 0.5).exp()}, 1));
  }
  if (!all.empty()) return at::cat(all);
  const int64_t factor = vae.config().factor();
  return at::zeros(
      {0, 2 * vae.config().latent_channels, pictures.size(2) / factor, pictures.size(3) / factor});
}

Json to_json(const EncoderRecord& record) {
  Json json{{"schema", 1}, {"vae", record.vae}, {"text", record.text}};
  if (!record.writing.empty()) json["text_writing"] = to_json(record.writing);
  for (const StoredRecord& stage : record.stages) {
    json["stages"].push_back({{"dtype", stage.dtype},
                              {"mean_only", stage.mean_only},
                              {"preprocessing", stage.preprocessing}});
  }
  return json;
}

static std::string in_words(const StoredRecord& stage) {
  if (stage.dtype.empty()) return "encoded on the way";
  return fmt::format("stored in {} as {}, preparation {}", stage.dtype,
                     stage.mean_only ? "means alone" : "means and deviations",
                     stage.preprocessing.substr(0, 8));
}

std::string stored_difference(const EncoderRecord& before, const EncoderRecord& now) {
  for (size_t i = 0; i < std::min(before.stages.size(), now.stages.size()); ++i) {
    if (before.stages[i] == now.stages[i]) continue;
    return fmt::format("stage {} is {}, before it was {}", i, in_words(now.stages[i]),
                       in_words(before.stages[i]));
  }
  return "";
}

static std::vector<StoredRecord> stages_from(const data::JsonFields& fields) {
  std::vector<StoredRecord> stages;
  for (const Json& one : fields.array("stages")) {
    const data::JsonFields stage(one, fields.origin());
    const Json& mean_only = stage.at("mean_only");
    if (!mean_only.is_boolean())
      throw DataError("{}: key \"mean_only\" is {}, expected true or false", fields.origin(),
                      mean_only.dump());
    stages.push_back({.dtype = stage.text("dtype"),
                      .mean_only = mean_only.get<bool>(),
                      .preprocessing = stage.text("preprocessing")});
  }
  return stages;
}

EncoderRecord read_encoder_record(const std::filesystem::path& run) {
  const std::filesystem::path path = run / "encoders.json";
  if (!std::filesystem::exists(path)) return {};
  const Json json = read_json_file(path);
  const std::string origin = path.string();
  const data::JsonFields fields(json, origin);
  EncoderRecord record{.vae = fields.text("vae"), .text = fields.text("text")};
  if (json.contains("text_writing"))
    record.writing = caption_writing_from(json.at("text_writing"), origin);
  if (json.contains("stages")) record.stages = stages_from(fields);
  return record;
}

}  // namespace mm::run
