#include "apps/mmckpt/output_options.h"

#include <map>

namespace mm::mmckpt {

std::optional<ckpt::DType> OutputOptions::element_type() const {
  static const std::map<std::string, ckpt::DType> kDtypes = {
      {"fp16", ckpt::DType::kF16}, {"bf16", ckpt::DType::kBF16}, {"fp32", ckpt::DType::kF32}};
  if (dtype == "keep") return std::nullopt;
  return kDtypes.at(dtype);
}

void add_output_options(CLI::App& verb, OutputOptions& options) {
  verb.add_option("out", options.out, "directory to make; must not exist")->required();
  verb.add_option("--dtype", options.dtype, "of floating-point tensors")
      ->check(CLI::IsMember({"keep", "fp16", "bf16", "fp32"}))
      ->capture_default_str();
  verb.add_option("--max-shard-size", options.max_shard_bytes,
                  "bytes of tensors in one file, such as 5GB (default: 5GB)")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::PositiveNumber);
  verb.add_flag("--json", options.json, "one JSON object instead of text");
}

}  // namespace mm::mmckpt
