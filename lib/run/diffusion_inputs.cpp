#include "lib/run/diffusion_inputs.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <mutex>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/model/vae.h"

namespace mm::run {
namespace {

/// Half of what a backward would keep of the widest stage.
double live_numbers(const model::VaeConfig& config) {
  model::Model model;
  double most = 0;
  for (const model::VaeStage& stage : declare_vae_encoder(model, config, ""))
    most = std::max(most, stage.cost.saved / 2);
  return most;
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

/// Whether [validation] makes by the recipe's models what its encoded set lacks.
bool held_out_encodes(const Recipe& recipe, const EncoderPaths& paths) {
  if (recipe.validation.every_steps == 0) return false;
  if (recipe.validation.encoded.empty()) return true;
  const EncodedSettings stored = read_encoded_manifest(recipe.validation.encoded).settings;
  return (!paths.vae.empty() && stored.vae.empty()) || (!paths.text.empty() && stored.text.empty());
}

/// Absent rows are met in every epoch; they are compared with the limit here, once.
void check_absent(const EncodedSet& set, double limit) {
  const uint64_t absent = set.absent_rows(), rows = set.settings().rows;
  if (static_cast<double>(absent) <= limit * static_cast<double>(rows)) return;
  throw DataError(
      "{}: {} of {} rows could not be read when they were encoded, more than "
      "loader.bad_sample_limit = {}; mend the data set and encode it again (mmshard encode), or "
      "raise the limit",
      set.directory().string(), absent, rows, limit);
}

}  // namespace

struct DiffusionInputs::Lazy {
  std::mutex mutex;
  std::shared_ptr<const Encoders> loaded;
  std::mutex hashing;
  std::string vae, text;  ///< hashes, once they were asked for
};

DiffusionInputs::~DiffusionInputs() = default;

DiffusionInputs::DiffusionInputs(const Recipe& recipe,
                                 const std::vector<data::DatasetManifest>& sets)
    : paths_(encoder_paths(recipe.model)),
      tokenizer_(recipe.stages.front().data / sets.front().tokenizer.file.file),
      dtype_(recipe.compute == "float64" ? at::kDouble : at::kFloat),
      draws_(recipe.sample.every_steps > 0 || held_out_encodes(recipe, paths_)),
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

std::string DiffusionInputs::vae_hash() const {
  const std::scoped_lock lock(lazy_->hashing);
  if (lazy_->vae.empty()) lazy_->vae = model_hash(paths_.vae);
  return lazy_->vae;
}

std::string DiffusionInputs::text_hash() const {
  const std::scoped_lock lock(lazy_->hashing);
  if (!lazy_->text.empty()) return lazy_->text;
  std::vector<std::string> hashes;
  for (const auto& text : paths_.text) hashes.push_back(model_hash(text));
  return lazy_->text = text_models_hash(hashes, paths_.text_padding);
}

void DiffusionInputs::open_stored(const Recipe& recipe) {
  for (const StageRecipe& stage : recipe.stages) {
    stored_.emplace_back();
    if (stage.encoded.empty()) continue;
    stored_.back() = EncodedSet::open(stage.encoded, *data::Dataset::open(stage.data));
    const EncodedSet& set = *stored_.back();
    check_absent(set, recipe.bad_sample_limit);
    if (has_latents(&set)) refuse_augmentation(stage);
    if (has_latents(&set) && !paths_.vae.empty()) {
      set.require_vae(vae_hash());
      require_scaling(set);
    }
    if (has_text(&set) && !paths_.text.empty()) {
      set.require_text(text_hash(), writing());
    }
  }
}

void DiffusionInputs::require_scaling(const EncodedSet& set) const {
  if (!has_latents(&set) || paths_.vae.empty()) return;
  const model::VaeConfig vae = model::read_vae_config(paths_.vae / "config.json");
  set.require_scaling(vae.scale, vae.shift);
}

std::vector<OpenedData> DiffusionInputs::opened() const {
  std::vector<OpenedData> all;
  for (const auto& set : stored_)
    if (set) all.push_back({set->directory().string(), set->fingerprint()});
  return all;
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
    vae_live_ = live_numbers(vae);
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
    text_live_ = text.live;
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
    record.vae = vae_hash();
  if (text_stored(0))
    record.text = stored(0)->settings().text;
  else if (!paths_.text.empty())
    record.text = text_hash();
  if (!paths_.text.empty())
    record.writing = writing();
  else if (text_stored(0))
    record.writing = stored(0)->settings().text_writing;
  const bool any = std::ranges::any_of(stored_, [](const auto& set) { return set != nullptr; });
  for (size_t i = 0; any && i < stored_.size(); ++i) {
    StoredRecord& stage = record.stages.emplace_back();
    if (stored(i) == nullptr) continue;
    const EncodedSettings& settings = stored(i)->settings();
    stage = {settings.dtype, settings.mean_only, settings.preprocessing};
  }
  return record;
}

double DiffusionInputs::encoding_bytes(size_t stage, const data::Pack& pack,
                                       const FrozenParts& at_once) const {
  const double element = dtype_ == at::kDouble ? 8 : 4;
  const auto pictures = static_cast<double>(pack.pictures());
  const auto of_all = [&](int64_t some) {
    return some > 0 ? std::min(1.0, static_cast<double>(some) / std::max(1.0, pictures)) : 1.0;
  };
  double bytes = 0;
  const auto pixels = static_cast<double>(pack.pixels());
  if (!paths_.vae.empty() && !latents_stored(stage))  // its pictures, and those of them that count
    bytes = element * pixels * (2 * 3 + vae_live_ * of_all(at_once.pictures));
  if (!paths_.text.empty() && !text_stored(stage)) {
    const double tokens = shape_.text_length > 0
                              ? pictures * static_cast<double>(shape_.text_length)
                              : static_cast<double>(pack.tokens);
    bytes = std::max(bytes, element * tokens * text_live_ * of_all(at_once.captions));
  }
  return bytes;
}

}  // namespace mm::run
