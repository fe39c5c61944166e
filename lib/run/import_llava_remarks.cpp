
#include "lib/run/import_dialects.h"

// What is said of LLaVA's and the Hugging Face trainer's flags that no code maps. A row with a
// value of its own stands before the row for all others.
namespace mm::run::detail {
namespace {

constexpr FlagRemark kTrainer[] = {
    {"auto_find_batch_size", "false", true, "off"},
    {"average_tokens_across_devices", "", false, "loss.reduction says how targets are averaged"},
    {"bf16_full_eval", "", true, "mmtrain eval computes as the recipe says"},
    {"data_seed", "", false, "run.seed draws the order too"},
    {"dataloader_drop_last", "", true, "the epoch's last step holds what is left"},
    {"dataloader_persistent_workers", "", true, "prefetch threads live as long as the run"},
    {"dataloader_pin_memory", "", true, "batches stay in memory of the host"},
    {"ddp_bucket_cap_mb", "", true, "comm.bucket_mib; it does not change the result"},
    {"ddp_find_unused_parameters", "", true, "the step program knows what is used"},
    {"ddp_timeout", "", true, "comm.timeout_s"},
    {"disable_tqdm", "", true, "step lines go to the log"},
    {"do_eval", "", true, "mmtrain eval is a verb of its own"},
    {"do_train", "", true, "mmtrain run trains"},
    {"eval_steps", "", true, "mmtrain eval is a verb of its own"},
    {"eval_strategy", "", true, "mmtrain eval is a verb of its own"},
    {"evaluation_strategy", "", true, "mmtrain eval is a verb of its own"},
    {"fp16_opt_level", "", true, "apex's levels"},
    {"gradient_checkpointing", "false", true, "off, as is recompute by default"},
    {"gradient_checkpointing_kwargs", "", true, "recompute.mode has no variants"},
    {"group_by_length", "", true, "packs of like cost share a step"},
    {"label_smoothing_factor", "0", true, "off"},
    {"label_smoothing_factor", "0.0", true, "off"},
    {"label_smoothing_factor", "", false, "the loss has no label smoothing"},
    {"length_column_name", "", true, "lengths stand in the packed index"},
    {"load_best_model_at_end", "", false, "the checkpoints that are kept are the newest"},
    {"local_rank", "", true, "RANK and LOCAL_RANK come from the launcher"},
    {"log_level", "", true, "of the Python logger"},
    {"logging_dir", "", true, "RUN/tb and RUN/metrics.jsonl"},
    {"logging_first_step", "", true, "metrics.jsonl has every step"},
    {"logging_strategy", "", true, "run.log_every"},
    {"lr_scheduler_kwargs", "", false, "stage.schedule.min_ratio and decay_steps say the rest"},
    {"neftune_noise_alpha", "", false, "embeddings get no noise"},
    {"overwrite_output_dir", "", true, "a run goes on where it was; another gets a new directory"},
    {"per_device_eval_batch_size", "", true, "mmtrain eval has its own"},
    {"push_to_hub", "", true, "nothing is sent anywhere"},
    {"remove_unused_columns", "", true, "records are read as their format says"},
    {"report_to", "", true, "metrics go to metrics.jsonl, TensorBoard files and report.html"},
    {"resume_from_checkpoint", "", true, "a run that is started again goes on by itself"},
    {"run_name", "", true, "--run names the directory"},
    {"save_on_each_node", "", true, "one manifest names all shards"},
    {"save_only_model", "", true,
     "checkpoints hold all that a resume needs; mmckpt convert writes "
     "weights alone"},
    {"save_safetensors", "", true, "checkpoints are safetensors"},
    {"skip_memory_metrics", "", true, "of the Python trainer"},
    {"torch_compile", "", true, "fused operations are built in"},
    {"torch_compile_backend", "", true, "fused operations are built in"},
    {"torch_compile_mode", "", true, "fused operations are built in"},
    {"use_cpu", "", true, "the engine takes what the machine has"},
};

constexpr FlagRemark kLlava[] = {
    {"add_time_instruction", "false", true, "off"},
    {"attn_implementation", "", true, "attention is exact in every backend"},
    {"bits", "16", true, "weights are not quantised"},
    {"bits", "", false, "weights are not quantised here: the base model stays in full"},
    {"cache_dir", "", true, "of the Hugging Face hub; models are directories here"},
    {"double_quant", "", true, "weights are not quantised"},
    {"force_sample", "", false, "video frames are not read"},
    {"fps", "", false, "video frames are not read"},
    {"frames_upbound", "", false, "video frames are not read"},
    {"group_by_modality_length", "", true,
     "spares padding, which packs do not have; a device's batch mixes modalities, so micro_mean "
     "weighs a short answer a little less than in the run"},
    {"group_by_modality_length_auto", "", true, "spares padding, which packs do not have"},
    {"group_by_varlen", "", true, "spares padding, which packs do not have"},
    {"image_crop_resolution", "", false, "mmshard pack has no crop of that kind"},
    {"image_split_resolution", "", false, "mmshard pack has no split of that kind"},
    {"is_multimodal", "", true, "pictures are read where records have them"},
    {"lazy_preprocess", "", true, "data are packed before the run"},
    {"mm_newline_position", "grid", true, "as config.json of model.from says"},
    {"mm_newline_position", "", false, "of video features"},
    {"mm_patch_merge_type", "flat", true, "as config.json of model.from says"},
    {"mm_patch_merge_type", "spatial_unpad", true, "as config.json of model.from says"},
    {"mm_patch_merge_type", "", false, "features of tiles are unpadded, with newlines"},
    {"mm_resampler_type", "", false, "there is no resampler"},
    {"mm_spatial_pool_mode", "", false, "of video features"},
    {"mm_spatial_pool_stride", "", false, "of video features"},
    {"mm_use_im_patch_token", "false", true, "as here: pictures stand for one mark"},
    {"mm_use_im_patch_token", "", false, "pictures stand for one mark, without patch tokens"},
    {"mm_use_im_start_end", "false", true, "as here: no marks around pictures"},
    {"mm_use_im_start_end", "", false, "no marks around pictures: their two rows are not made"},
    {"mm_vision_select_feature", "patch", true, "as config.json of model.from says"},
    {"mm_vision_select_feature", "", false, "the class token is dropped"},
    {"mm_vision_select_layer", "", true, "as config.json of model.from says"},
    {"mpt_attn_impl", "", true, "attention is exact in every backend"},
    {"quant_type", "", true, "weights are not quantised"},
    {"rope_scaling_factor", "", false, "config.json of model.from says it"},
    {"rope_scaling_type", "", false, "config.json of model.from says it"},
    {"use_im_start_end", "false", true, "as here: no marks around pictures"},
    {"vision_tower_pretrained", "", false, "the tower's weights are those of model.from"},
    {"video_folder", "", false, "videos are not read"},
    {"video_fps", "", false, "videos are not read"},
};

}  // namespace

std::span<const FlagRemark> hf_trainer_remarks() { return kTrainer; }
std::span<const FlagRemark> llava_remarks() { return kLlava; }

}  // namespace mm::run::detail
