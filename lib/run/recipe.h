#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/run/metric_schedule.h"

namespace mm::run {

/// The parts that freezing and learning rates speak of, as recipes spell them: of vision-language
/// models and of diffusion models.
inline const std::vector<std::string> kParts{"vision", "projector", "language"};
inline const std::vector<std::string> kDiffusionParts{"text_encoder", "transformer"};
/// Of diffusion models without a text encoder of their own.
inline const std::vector<std::string> kTransformerParts{"transformer"};
inline const std::vector<std::string> kVaeParts{"vae"};

/// [model]: either `from` (a Hugging Face directory) or sizes for a start from scratch.
struct ModelRecipe {
  std::string family = "llava";
  std::filesystem::path from;  ///< Hugging Face directory; empty: the sizes below
  struct Vision {
    int64_t hidden = 128, layers = 4, heads = 4, mlp = 512, patch = 8, image_side = 64,
            feature_layer = -2;
    std::string kind = "clip";  ///< or "siglip"; not of qwen2_5_vl
    std::string grids;  ///< of families with tiles: rows x columns, as mmshard pack takes them
    int64_t max_grid_tiles = 0;  ///< of llava_onevision
    // Of qwen2_5_vl, whose pictures have no common side.
    int64_t merge = 1, window = 0;
    std::vector<int64_t> full_layers;
  } vision;
  /// (byte / 255 - mean) / std per channel; by default as `from` was trained, else CLIP's values.
  struct Normalise {
    std::vector<double> mean{0.48145466, 0.4578275, 0.40821073};
    std::vector<double> std{0.26862954, 0.26130258, 0.27577711};
  } normalise;
  std::optional<Normalise> from_normalise;  ///< of the pictures that `from` was trained on
  bool normalise_stated = false;            ///< by the recipe, in part or whole
  /// "linear" or "mlp2x_gelu"; empty: as config.json of `from` says.
  std::string projector;
  struct Language {
    int64_t hidden = 192, layers = 4, heads = 4, kv_heads = 2, mlp = 512;
    double rope_theta = 10000;
    bool tied_head = false;
    std::string kind = "llama";          ///< "llama", "mistral", "qwen2", "qwen3"
    std::vector<int64_t> rope_sections;  ///< of qwen2_5_vl
  } language;
  /// Of the diffusion families.
  struct Transformer {
    int64_t hidden = 384, layers = 12, heads = 6, patch = 2;
    int64_t grid_side = 16;  ///< patches along the side that positions are made for
    bool qk_norm = false;
    int64_t time_divisor = 128;        ///< of the frequencies of the time embedding: 127 or 128
    double position_scale = 1;         ///< coordinates are divided by it
    bool size_embedders = false;       ///< pixart: resolution and aspect ratio beside the time
    std::vector<int64_t> dual_layers;  ///< sd3: with a second attention over the picture
  } transformer;
  /// A text encoder of our own in front of the transformer.
  struct TextEncoder {
    int64_t hidden = 256, layers = 4, heads = 4;
    int64_t max_tokens = 32;  ///< of a caption
  } text_encoder;
  /// Frozen models in front of a diffusion transformer: they encode what a stage has not stored,
  /// and what is stored must be of them. Empty: pixels and caption ids, or whatever is stored.
  std::filesystem::path vae;
  std::vector<std::filesystem::path> text_models;
  int64_t text_padding = 0;  ///< CaptionEncoders
  /// Of family "vae".
  struct Autoencoder {
    std::vector<int64_t> channels{32, 64, 64};  ///< of the resolutions, widest picture first
    int64_t latent_channels = 4, layers = 1, groups = 16;
    double scaling_factor = 1;
  } autoencoder;
  bool diffusion() const { return family == "dit" || family == "pixart" || family == "sd3"; }
  /// Trains on pictures in buckets.
  bool bucketed() const { return diffusion() || family == "vae"; }
  /// Parts of this family.
  const std::vector<std::string>& parts() const {
    if (family == "vae") return kVaeParts;
    if (!diffusion()) return kParts;
    return family == "pixart" && text_models.empty() ? kDiffusionParts : kTransformerParts;
  }
  int64_t vocab_rows = 0;  ///< rows of the vocabulary tables at least; 0: as many as there are ids
  int64_t vocab_multiple = 1;   ///< rows are filled up to a multiple of this
  std::string init = "normal";  ///< "normal" (init_std everywhere), "fan_in"
  double init_std = 0.02;
};

/// [lora]: low-rank adapters of frozen linear layers (lib/model/lora.h).
struct LoraRecipe {
  int64_t rank = 0;  ///< 0: no adapters
  double alpha = 0;
  double dropout = 0;                                       ///< share of an adapter's inputs
  std::map<std::string, std::vector<std::string>> targets;  ///< by part; a part without is absent
  std::filesystem::path from;  ///< adapter directory in PEFT's layout; empty: they start at zero

  bool on() const { return rank > 0; }
};

/// The learning rate over a stage: warm-up, then constant, cosine or warm-up-stable-decay
/// (lib/optim/schedule.h).
struct ScheduleRecipe {
  std::string kind = "cosine";
  int64_t warmup_steps = 0;
  int64_t decay_steps = 0;  ///< wsd
  double min_ratio = 0;     ///< of the base rate
};

struct AugmentRecipe {
  int64_t shift_pixels = 0;
  double flip_probability = 0;
  double brightness = 0;
  double token_drop = 0;
};

/// [recompute]: what the backward runs again instead of keeping it. Changes memory and time, not
/// results.
struct RecomputeRecipe {
  std::string mode = "none";        ///< "none", "block", "selective"
  std::vector<std::string> pieces;  ///< selective: "attention", "mlp"
};

/// [loss]: how the losses of a step's targets become one number (lib/run/loss_weights.h).
struct LossRecipe {
  std::string reduction = "global_token";
  int64_t micro_packs = 1;  ///< micro_mean: packs of a group

  friend bool operator==(const LossRecipe&, const LossRecipe&) = default;
};

/// [diffusion]: what a diffusion model learns (lib/model/objective.h).
struct DiffusionRecipe {
  std::string predict = "epsilon";  ///< "epsilon", "v", "flow"
  std::string noise_schedule = "linear";
  int64_t time_steps = 1000;
  bool learned_sigma = false;  ///< the model's second half of channels is a variance: VLB
  double min_snr_gamma = 0;    ///< 0: off
  std::string time_draw = "uniform";
  std::string loss_weight = "none";
  double shift = 1;
  double shift_patches = 0;  ///< patches of the picture that `shift` is of, 0: of all sizes
  double time_mean = 0, time_deviation = 1;  ///< of time_draw "logit_normal"
  double time_mode_scale = 1.29;             ///< of time_draw "mode"
  bool time_table = false;                   ///< flow: sigmas of a table of time_steps entries
  double label_drop = 0.1;                   ///< of labels and captions, for guidance
  std::vector<double> encoder_drop;      ///< of each text model's share of a caption; empty: none
  std::string normalisation = "sample";  ///< or "element"
};

/// [reconstruction]: what an autoencoder learns (lib/model/vae_training.h).
struct ReconstructionRecipe {
  std::string error = "absolute";  ///< "absolute", "squared"
  double kl_weight = 1e-6;
};

/// [ema]: a moving average of the weights, kept in fp32 beside them.
struct EmaRecipe {
  double decay = 0;  ///< 0: none
  std::string warmup = "none";
  double power = 2.0 / 3;

  bool on() const { return decay > 0; }
};

/// [sample]: a grid of pictures drawn every so many steps of a diffusion model.
struct SampleRecipe {
  int64_t every_steps = 0;  ///< 0: none
  std::vector<std::string> prompts, labels;
  int64_t columns = 4, rows = 2;
  std::string sampler = "auto";  ///< "auto", "ddim", "dpm", "euler"
  int64_t steps = 0;             ///< model evaluations, 0: the sampler's usual number
  double guidance = 4;
  bool guide_three = false;       ///< the first three channels alone
  int64_t width = 0, height = 0;  ///< of a picture, pixels; 0: the squarest of the data set's
  uint64_t seed = 0;
};

/// [validation]: the loss of held-out pictures at fixed times (lib/run/validation_loss.h), every so
/// many steps of a diffusion model.
struct ValidationRecipe {
  int64_t every_steps = 0;        ///< 0: none
  std::filesystem::path data;     ///< a bucketed set of the stages' tokenizer or classes
  std::filesystem::path encoded;  ///< what mmshard encode made of it; empty: pixels, caption ids
  int64_t pictures = 0;           ///< the first of the set, 0: all
};

/// One [[stage]]: what is trained, on what, for how long.
struct StageRecipe {
  std::string name;
  std::filesystem::path data;      ///< a data set that mmshard packed
  std::filesystem::path encoded;   ///< what mmshard encode made of it; empty: pixels, caption ids
  std::vector<std::string> train;  ///< parts; the others are frozen and cost nothing
  int64_t steps = 0;
  int64_t sequence_length = 0;       ///< tokens of a pack at most
  int64_t packs_per_step = 0;        ///< global batch
  int64_t max_images = 0;            ///< of a pack, 0: no cap
  std::string packing = "tight";     ///< a name of data::packing_names()
  std::string oversize = "refuse";   ///< a name of data::Oversize
  int64_t max_attention_pairs = 0;   ///< of a pack, 0: no cap
  int64_t batch_pixels = 0;          ///< of a micro-batch at most, packing = "buckets"
  std::string leftovers = "keep";    ///< a name of data::Leftovers
  double image_cost = 0;             ///< of a picture, in tokens: how steps are balanced
  std::map<std::string, double> lr;  ///< base rate of each trained part
  ScheduleRecipe schedule;
  std::string optimizer = "adamw";  ///< or "lion"
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double clip_norm = 1.0;  ///< 0: none
  AugmentRecipe augment;
  LossRecipe loss;  ///< of the run, where the stage has none of its own
};

/// A whole recipe, checked. docs/recipes.md lists every key with type, default and meaning.
struct Recipe {
  std::filesystem::path path;
  uint64_t seed = 0;
  std::filesystem::path init_from;  ///< run or checkpoint whose weights training starts from
  ModelRecipe model;
  LoraRecipe lora;
  std::string compute;  ///< "auto" (bf16 where the CPU has it), "fp32", "bf16", "fp16", "float64"
  std::map<std::string, std::string> part_compute;  ///< parts that differ from `compute`
  double loss_scale = 65536;                        ///< fp16: to begin with
  int64_t loss_scale_growth_steps = 2000;           ///< fp16: good updates before it doubles
  RecomputeRecipe recompute;
  int64_t frozen_pictures_at_once = 0;  ///< 0: all of a micro-batch
  int64_t frozen_captions_at_once = 0;  ///< of text models, 0: all of a micro-batch
  bool frozen_ahead = false;
  std::string backend;  ///< "gloo"
  double comm_timeout_s = 60;
  int64_t bucket_mib = 4;        ///< gradient bucket
  int64_t checkpoint_every = 0;  ///< steps; 0: only at stage ends
  int64_t checkpoint_keep = 2;
  int64_t log_every = 10;
  bool costliest_first = false;         ///< run the costliest pack once before a stage
  std::string memory_check = "refuse";  ///< "refuse", "warn", "off"
  int64_t loader_threads = 1, loader_prefetch = 4;
  int64_t loader_max_threads = 0, loader_max_prefetch = 0;  ///< 0: as they are
  std::string loader_verify;                                ///< "every" or "first" read of a sample
  int64_t loader_memory_mib = 0;                            ///< of steps ahead; 0: no limit
  std::filesystem::path cache_dir;                          ///< empty: no cache on disk
  int64_t cache_bytes = 0, cache_memory_bytes = 0;          ///< budgets of a node
  LossRecipe loss;
  DiffusionRecipe diffusion;
  ReconstructionRecipe reconstruction;
  EmaRecipe ema;
  SampleRecipe sample;
  ValidationRecipe validation;
  MetricSchedule metrics;
  double bad_sample_limit = 0.001;  ///< share of samples that may fail at read time
  std::vector<StageRecipe> stages;
  std::string resolved;   ///< TOML text of every key, defaults included
  std::string reference;  ///< Markdown table of every key that was read: type, default, meaning

  int64_t total_steps() const;
  /// Stage index and step within it for a global step in [0, total_steps()]; the total maps to the
  /// end of the last stage.
  std::pair<size_t, int64_t> locate(int64_t global_step) const;
};

/// Whether directories that a recipe starts from must be there when it is read. kOfRun: for the
/// recipe that a run left, whose directories may be absent and whose keys without effect stand:
/// they were not always refused.
enum class RecipePaths { kMustExist, kMayBeAbsent, kOfRun };

/// Reads and checks `path` with `--set a.b=c` overrides. Throws UsageError with file, line, column
/// and the nearest known key.
Recipe read_recipe(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                   RecipePaths paths = RecipePaths::kMustExist);

/// The keys whose change makes a saved state useless or misleading (model sizes, seed, stages' data
/// and batch), as JSON; stored with checkpoints and compared on resume.
Json resume_contract(const Recipe& recipe);
/// `now` as a state of before some of its keys would have it: without those that `saved` lacks, and
/// with those of `saved` that had no effect.
Json contract_known_to(const Json& saved, Json now);
/// The contract without what --allow-loss-change lets differ.
Json without_loss(const Json& contract);

}  // namespace mm::run
