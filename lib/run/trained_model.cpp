#include "lib/run/trained_model.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/base/run_dir.h"
#include "lib/data/collate.h"
#include "lib/model/generate.h"
#include "lib/model/initial_draw.h"
#include "lib/run/batch_tensors.h"
#include "lib/run/model_setup.h"
#include "lib/run/run_snapshot.h"
#include "lib/run/stop_tokens.h"
#include "lib/state/load_state.h"
#include "lib/text/render.h"

namespace mm::run {
namespace {

data::PictureLayout layout_of(const TrainedModel& trained) {
  const auto side = static_cast<int32_t>(trained.config.vision.image_size);
  return {.height = side,
          .width = side,
          .patches = static_cast<int32_t>(trained.config.patches_per_image()),
          .image_token_id = static_cast<int32_t>(trained.config.image_token_index),
          .varied = trained.config.varied_pictures()};
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n\t");
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find_last_not_of(" \n\t") - begin + 1);
}

}  // namespace

model::SimpleParams TrainedModel::untrained() const {
  std::vector<at::Tensor> values;
  for (const model::ParamSpec& spec : model->params)
    values.push_back(model::InitialDraw(spec, seed).whole());
  return model::SimpleParams(*model, std::move(values),
                             std::vector<bool>(model->params.size(), false));
}

TrainedModel open_trained(const std::filesystem::path& run) {
  const RunDir directory = RunDir::open(run);
  const Recipe recipe = read_recipe(directory.recipe(), {}, RecipePaths::kOfRun);
  if (recipe.model.bucketed())
    throw UsageError(
        "{}: a run of family {}, which answers no questions; expected a vision-language model",
        run.string(), recipe.model.family);
  const state::Checkpoint checkpoint = state::open_checkpoint(run);
  const RunSnapshot snapshot =
      RunSnapshot::from_json(checkpoint.manifest.state, checkpoint.directory.string());
  TrainedModel trained{
      .run = run,
      .step = snapshot.global_step,
      .seed = snapshot.seed,
      .config = model::llava_config_from_json(snapshot.config, checkpoint.directory.string())};
  trained.model = std::make_unique<model::Model>(build_model(recipe, trained.config));
  std::vector<at::Tensor> values;
  std::vector<state::StateTensor> wanted;
  for (const model::ParamSpec& spec : trained.model->params) {
    values.push_back(at::empty(spec.shape, at::kFloat));
    wanted.push_back({spec.name, values.back()});
  }
  state::load_tensors(checkpoint, wanted);
  trained.params = std::make_unique<model::SimpleParams>(*trained.model, std::move(values),
                                                         std::vector<bool>(wanted.size(), false));
  trained.data =
      data::manifest_from_json(read_json_file(run / "data.json"), (run / "data.json").string());
  trained.stop_tokens = stop_tokens_of(trained.config.text, run / "hf" / "generation_config.json");
  trained.norm = pixel_norm(recipe.model.normalise.mean, recipe.model.normalise.std);
  trained.tokenizer = text::load_tokenizer(run / trained.data.tokenizer.file.file);
  add_template_stop(trained.data.chat_template, *trained.tokenizer, trained.stop_tokens);
  return trained;
}

model::Batch prompt_batch(const TrainedModel& trained,
                          const std::vector<const data::Sample*>& samples) {
  const data::PictureLayout layout = layout_of(trained);
  data::MicroBatch batch = data::empty_micro_batch(layout);
  for (const data::Sample* sample : samples) {
    data::Sample prompt = *sample;
    if (!prompt.text.trainable.empty())
      prompt.text.tokens.resize(prompt.text.trainable.front().begin);
    prompt.text.trainable.clear();
    data::append_sample(prompt, 0, layout, batch);
  }
  return to_batch(batch, trained.config, at::kFloat, trained.norm);
}

model::Batch whole_batch(const TrainedModel& trained,
                         const std::vector<const data::Sample*>& samples) {
  const data::PictureLayout layout = layout_of(trained);
  data::MicroBatch batch = data::empty_micro_batch(layout);
  for (const data::Sample* sample : samples) data::append_sample(*sample, 0, layout, batch);
  return to_batch(batch, trained.config, at::kFloat, trained.norm);
}

data::Sample picture_prompt(const TrainedModel& trained, std::vector<uint8_t> pixels,
                            const std::optional<data::PictureGrid>& grid) {
  const auto chat = text::find_template(trained.data.chat_template);
  if (!chat)
    throw DataError("{}: unknown chat template {}", (trained.run / "data.json").string(),
                    trained.data.chat_template);
  text::Conversation conversation = text::caption_conversation("", 1);
  if (conversation.turns.back().role == text::Role::kAssistant) conversation.turns.pop_back();
  const auto rendered =
      text::render(conversation, *chat, *trained.tokenizer,
                   {.image_tokens = grid ? grid->tokens
                                         : static_cast<int32_t>(trained.config.patches_per_image()),
                    .prompt_only = true});
  if (!rendered) throw DataError("{}: {}", trained.run.string(), rendered.failure().message);
  data::Sample sample;
  sample.text.tokens = rendered->ids;
  for (const text::ImageSpan& span : rendered->images)
    sample.text.image_begin.push_back(static_cast<uint32_t>(span.begin));
  sample.pixels = std::move(pixels);
  if (grid) sample.grids = {*grid};
  return sample;
}

std::vector<std::string> answer(const TrainedModel& trained, const model::ParamView& params,
                                const std::vector<const data::Sample*>& prompts,
                                int64_t max_new_tokens) {
  model::GenerateOptions options{.max_new_tokens = max_new_tokens,
                                 .stop_tokens = trained.stop_tokens,
                                 .banned_tokens = {trained.config.image_token_index}};
  std::vector<std::string> texts;
  constexpr size_t kAtOnce = 50;  // prompts a pass: bounds the key-value cache
  for (size_t begin = 0; begin < prompts.size(); begin += kAtOnce) {
    const std::vector<const data::Sample*> some(
        prompts.begin() + static_cast<int64_t>(begin),
        prompts.begin() + static_cast<int64_t>(std::min(prompts.size(), begin + kAtOnce)));
    for (const std::vector<int64_t>& ids :
         model::generate(*trained.model, params, prompt_batch(trained, some), options)) {
      texts.push_back(
          trimmed(trained.tokenizer->decode(std::vector<int32_t>(ids.begin(), ids.end()))));
    }
  }
  return texts;
}

}  // namespace mm::run
