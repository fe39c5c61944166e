#include "lib/run/import_dialects.h"

// What is said of Megatron-LM's flags that no code maps. A row with a value of its own stands
// before the row for all others.
namespace mm::run::detail {
namespace {

constexpr std::string_view kSize = "config.json of model.from gives all sizes";
constexpr std::string_view kLayout = "how the run is laid out does not change the result";
constexpr std::string_view kFused = "which kernel computes it does not change the result";
constexpr std::string_view kLogging = "metrics.jsonl and TensorBoard files have it";
constexpr std::string_view kEval = "mmtrain eval is a verb of its own";
constexpr std::string_view kStart = "weights come from model.from, a run goes on by itself";
constexpr std::string_view kFp16 = "of fp16, in which this run does not compute";

constexpr FlagRemark kRemarks[] = {
    {"accumulate_allreduce_grads_in_fp32", "", true, "gradients are always summed in fp32"},
    {"allow_missing_vision_projection_checkpoint", "", true, kStart},
    {"apply_layernorm_1p", "", true, "a weight of another form in the file, the same function"},
    {"attention_backend", "", true, kFused},
    {"attention_dropout", "0", true, "off"},
    {"attention_dropout", "0.0", true, "off"},
    {"attention_dropout", "", false, "there is no dropout"},
    {"attention_softmax_in_fp32", "", true, "softmax is always in fp32"},
    {"context_parallel_size", "", true, kLayout},
    {"data_cache_path", "", true, "data are packed before the run"},
    {"dataloader_save", "", true, "checkpoints hold the place in the data"},
    {"dataloader_type", "", true, "data are packed before the run"},
    {"dataset_config", "", true, "data are packed before the run"},
    {"disable_bias_linear", "", true, kSize},
    {"disable_vision_class_token", "", true, "the class token is dropped, as in LLaVA"},
    {"distributed_backend", "", true, "comm.backend"},
    {"distributed_timeout_minutes", "", true, "comm.timeout_s"},
    {"encoder_num_layers", "", true, kSize},
    {"encoder_seq_length", "", true, "picture tokens follow from side and patch"},
    {"eod_mask_loss", "", true, "templates say which tokens are trained on"},
    {"eval_interval", "", true, kEval},
    {"eval_iters", "", true, kEval},
    {"exit_duration_in_mins", "", true, "mmtrain stops on the signal that Slurm sends ahead"},
    {"ffn_hidden_size", "", true, kSize},
    {"group_query_attention", "", true, kSize},
    {"hidden_dropout", "0", true, "off"},
    {"hidden_dropout", "0.0", true, "off"},
    {"hidden_dropout", "", false, "there is no dropout"},
    {"hidden_size", "", true, kSize},
    {"hysteresis", "", true, kFp16},
    {"image_tag_type", "", false, "templates have no tags around pictures"},
    {"img_embedding_idx", "", true, "pictures stand where their marks stand"},
    {"init_method_std", "", true, "weights come from model.from"},
    {"initial_loss_scale", "", true, kFp16},
    {"load", "", true, kStart},
    {"log_memory_to_tensorboard", "", true, kLogging},
    {"log_num_zeros_in_grad", "", true, "no such metric; it changes nothing"},
    {"log_params_norm", "", true, "no such metric; it changes nothing"},
    {"log_throughput", "", true, kLogging},
    {"log_timers_to_tensorboard", "", true, kLogging},
    {"log_validation_ppl_to_tensorboard", "", true, kEval},
    {"loss_scale", "", false, "the scale moves here: halved at overflow, else doubled"},
    {"loss_scale_window", "", true, kFp16},
    {"make_vocab_size_divisible_by", "", true, kSize},
    {"max_position_embeddings", "", true, "rotary positions have no table"},
    {"min_loss_scale", "", true, kFp16},
    {"min_lr", "", false, "expected a rate of at most --lr"},
    {"no_gradient_accumulation_fusion", "", true, kFused},
    {"no_load_optim", "", true, kStart},
    {"no_load_rng", "", true, kStart},
    {"no_masked_softmax_fusion", "", true, kFused},
    {"normalization", "", true, kSize},
    {"num_attention_heads", "", true, kSize},
    {"num_frames", "1", true, "pictures, not videos"},
    {"num_frames", "", false, "videos are not read"},
    {"num_layers", "", true, kSize},
    {"num_query_groups", "", true, kSize},
    {"overlap_grad_reduce", "", true, "reductions always overlap with the backward"},
    {"overlap_param_gather", "", true, kLayout},
    {"pipeline_model_parallel_size", "", true, kLayout},
    {"position_embedding_type", "rope", true, kSize},
    {"prompt_path", "", false, "questions stand in the data, or in mmshard pack --question"},
    {"recompute_method", "", true, "recompute.mode has no variants"},
    {"recompute_num_layers", "", true, "recompute.mode holds for all trained layers"},
    {"recompute_vision", "", true, "recompute.mode holds for all trained layers"},
    {"rotary_base", "", true, kSize},
    {"rotary_percent", "1.0", true, kSize},
    {"rotary_percent", "", false, "all of a head is rotated"},
    {"sequence_parallel", "", true, kLayout},
    {"special_tokens", "", false, "added tokens stand in the tokenizer's files"},
    {"spec", "", true, kFused},
    {"split", "", true, "a data set is for one purpose: pack held-out data apart"},
    {"swiglu", "", true, kSize},
    {"tensor_model_parallel_size", "", true, kLayout},
    {"tensorboard_dir", "", true, kLogging},
    {"tensorboard_log_interval", "", true, kLogging},
    {"timing_log_level", "", true, kLogging},
    {"tokenizer_type", "", true, "mmshard pack tells from the file"},
    {"transformer_impl", "", true, kFused},
    {"untie_embeddings_and_output_weights", "", true, kSize},
    {"use_area_weighted_aspect_ratio", "", false, "the internvl rule chooses tiles"},
    {"use_checkpoint_args", "", true, kSize},
    {"use_dist_ckpt", "", true, "checkpoints are for any layout"},
    {"use_distributed_optimizer", "", true, kLayout},
    {"use_flash_attn", "", true, kFused},
    {"use_loss_scaling", "", false,
     "loss.reduction = \"sqrt\" weighs a sample of n targets sqrt(n)"},
    {"use_mcore_models", "", true, kFused},
    {"use_te", "", true, kFused},
    {"use_tile_tags", "", false, "templates have no tags around tiles"},
    {"valid_path", "", true, kEval},
    {"vocab_size", "", true, kSize},
    {"wandb_project", "", true, kLogging},
    {"wandb_exp_name", "", true, kLogging},
};

}  // namespace

std::span<const FlagRemark> megatron_remarks() { return kRemarks; }

}  // namespace mm::run::detail
