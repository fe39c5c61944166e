#include "lib/run/diffusion_inputs.h"

#include <c10/util/accumulate.h>

#include <mutex>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/model/vae.h"

namespace mm::run {
namespace {

bool has_latents(const EncodedSet* set) { return set != nullptr && set->settings().channels > 0; }
bool has_text(const EncodedSet* set) { return set != nullptr && set->settings().text_width > 0; }

std::string text_hash(const EncoderPaths& paths) {
  std::vector<std::string> hashes;
  for (const auto& text : paths.text) hashes.push_back(model_hash(text));
  return text_models_hash(hashes, paths.text_padding);
}

double encoder_elements(const model::VaeConfig& config) {
  model::Model model;
  declare_vae_encoder(model, config, "");
  declare_vae_decoder(model, config, "");
  double sum = 0;
  for (const model::ParamSpec& spec : model.params)
    sum += static_cast<double>(c10::multiply_integers(spec.shape));
  return sum;
}

void refuse_augmentation(const StageRecipe& stage) {
  const AugmentRecipe& a = stage.augment;
  if (a.shift_pixels == 0 && a.flip_probability == 0 && a.brightness == 0) return;
  throw UsageError(
      "stage {}: augment changes pixels, and its latents are stored; leave augment out, or leave "
      "stage.encoded out and give model.vae, which encodes on the way",
      stage.name);
}

}  // namespace

struct DiffusionInputs::Lazy {
  std::mutex mutex;
  std::shared_ptr<const Encoders> loaded;
};

DiffusionInputs::~DiffusionInputs() = default;

DiffusionInputs::DiffusionInputs(const Recipe& recipe,
                                 const std::vector<data::DatasetManifest>& sets)
    : paths_(encoder_paths(recipe.model)),
      tokenizer_(recipe.stages.front().data / sets.front().tokenizer.file.file),
      dtype_(recipe.compute == "float64" ? at::kDouble : at::kFloat),
      draws_(recipe.sample.every_steps > 0),
      lazy_(std::make_unique<Lazy>()) {
  open_stored(recipe);
  check_stages_agree(recipe);
  find_shape();
}

bool DiffusionInputs::latents_stored(size_t stage) const { return has_latents(stored(stage)); }
bool DiffusionInputs::text_stored(size_t stage) const { return has_text(stored(stage)); }

std::vector<CaptionWriting> DiffusionInputs::writing() const {
  return open_caption_tokenizers(paths_.text, paths_.text_padding, tokenizer_).writing;
}

void DiffusionInputs::open_stored(const Recipe& recipe) {
  std::string vae, text;  // hashed once, and only where something stored is compared with them
  for (const StageRecipe& stage : recipe.stages) {
    stored_.emplace_back();
    if (stage.encoded.empty()) continue;
    stored_.back() = EncodedSet::open(stage.encoded, *data::Dataset::open(stage.data));
    const EncodedSet& set = *stored_.back();
    if (has_latents(&set)) refuse_augmentation(stage);
    if (has_latents(&set) && !paths_.vae.empty()) {
      if (vae.empty()) vae = model_hash(paths_.vae);
      set.require_vae(vae);
    }
    if (has_text(&set) && !paths_.text.empty()) {
      if (text.empty()) text = text_hash(paths_);
      set.require_text(text, writing());
    }
  }
}

/// Stages of a recipe that names its encoders agree with them; of others with the first.
void DiffusionInputs::check_stages_agree(const Recipe& recipe) const {
  const auto vae_of = [&](size_t i) { return latents_stored(i) ? stored(i)->settings().vae : ""; };
  const auto text_of = [&](size_t i) { return text_stored(i) ? stored(i)->settings().text : ""; };
  const auto writing_of = [&](size_t i) {
    return text_stored(i) ? stored(i)->settings().text_writing : std::vector<CaptionWriting>();
  };
  for (size_t i = 1; i < stored_.size(); ++i) {
    if ((!paths_.vae.empty() || vae_of(i) == vae_of(0)) &&
        (!paths_.text.empty() ||
         (text_of(i) == text_of(0) && writing_difference(writing_of(0), writing_of(i)).empty())))
      continue;
    throw UsageError("stage {}: encoded by other models than stage {}; encode both with the same",
                     recipe.stages[i].name, recipe.stages[0].name);
  }
}

void DiffusionInputs::find_shape() {
  if (!paths_.vae.empty()) {
    const model::VaeConfig vae = model::read_vae_config(paths_.vae / "config.json");
    shape_.channels = vae.latent_channels;
    shape_.factor = vae.factor();
    vae_elements_ = encoder_elements(vae);
  } else if (latents_stored(0)) {
    shape_.channels = stored(0)->settings().channels;
    shape_.factor = stored(0)->settings().factor;
  }
  if (!paths_.text.empty()) {
    const CaptionShape text = caption_shape(paths_.text, paths_.text_padding);
    shape_.text_width = text.width;
    shape_.pooled_width = text.pooled_width;
    shape_.text_length = text.length;
    shape_.text_shares = text.shares;
    text_elements_ = text.elements;
  } else if (text_stored(0)) {
    const EncodedSettings& settings = stored(0)->settings();
    shape_.text_width = settings.text_width;
    shape_.pooled_width = settings.pooled_width;
    shape_.text_length = settings.text_length;
    shape_.text_shares = settings.text_shares;
  }
}

std::shared_ptr<const Encoders> DiffusionInputs::all() const {
  if (paths_.empty()) return nullptr;
  const std::scoped_lock lock(lazy_->mutex);
  if (!lazy_->loaded) {
    log::info("run", "frozen encoders are loaded",
              {{"vae", paths_.vae.string()}, {"text_models", paths_.text.size()}});
    lazy_->loaded = load_encoders(paths_, tokenizer_, dtype_);
  }
  return lazy_->loaded;
}

const Encoders* DiffusionInputs::online(size_t stage) const {
  const bool vae = !paths_.vae.empty() && !latents_stored(stage);
  const bool text = !paths_.text.empty() && !text_stored(stage);
  return vae || text ? all().get() : nullptr;
}

bool DiffusionInputs::any_online() const {
  for (size_t i = 0; i < stored_.size(); ++i) {
    if ((!paths_.vae.empty() && !latents_stored(i)) || (!paths_.text.empty() && !text_stored(i)))
      return true;
  }
  return false;
}

double DiffusionInputs::online_elements() const {
  return draws_ || any_online() ? vae_elements_ + text_elements_ : 0;
}

EncoderRecord DiffusionInputs::record() const {
  EncoderRecord record;
  if (latents_stored(0))
    record.vae = stored(0)->settings().vae;
  else if (!paths_.vae.empty())
    record.vae = model_hash(paths_.vae);
  if (text_stored(0))
    record.text = stored(0)->settings().text;
  else if (!paths_.text.empty())
    record.text = text_hash(paths_);
  if (!paths_.text.empty())
    record.writing = writing();
  else if (text_stored(0))
    record.writing = stored(0)->settings().text_writing;
  return record;
}

}  // namespace mm::run
