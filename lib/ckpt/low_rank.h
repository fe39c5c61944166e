#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/safetensors_writer.h"

namespace mm::ckpt {

/// How much the low-rank pairs of a model add to its weights: alpha / rank x B A.
struct LowRank {
  int64_t rank = 0;
  double alpha = 0;
  double dropout = 0;  ///< of the pairs' inputs while they are trained; no part of the sum
  double scale() const { return alpha / static_cast<double>(rank); }
};

/// "x.lora_A.weight", "x.lora_B.weight": what a pair of the module "x" is called.
bool is_low_rank_name(std::string_view tensor);
/// "x" of the above.
std::string low_rank_module(std::string_view tensor);

/// Replaces each weight W [out, in] that has a pair by W + scale B A, in W's type (products and sum
/// in fp32, float64 for float64 weights; rounded once), and drops the pairs. The sums are made when
/// the tensors stream: one weight and its pair are held at a time. O(rank * elements) on all cores.
/// `origin` stands in messages: DataError for a pair without its other half or its weight, or whose
/// shapes do not fit.
void merge_low_rank(std::vector<TensorSource>& tensors, const LowRank& low_rank,
                    const std::string& origin);

}  // namespace mm::ckpt
