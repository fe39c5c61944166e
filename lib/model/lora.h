#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/model/block.h"

namespace mm::model {

/// Low-rank adaptation (Hu et al. 2021): a frozen weight W [out, in] of a linear layer gets a
/// trained addition (alpha / rank) B A, with A [rank, in] drawn uniformly from +-1 / sqrt(in) and B
/// [out, rank] zero, so that the model starts as it was.
struct LoraOptions {
  int64_t rank = 16;
  double alpha = 32;  ///< the addition's scale is alpha / rank
  /// Share of an adapter's inputs that is dropped in training, in [0, 1): the layer gives W x +
  /// scale B A dropout(x), a draw for each adapter (lib/model/adapter_dropout.h). Adapters that are
  /// frozen drop nothing.
  double dropout = 0;
  /// Modules that get an addition, by part: "q_proj" is every linear of that name,
  /// "layers.0.mlp.fc1" every one whose name ends so, a word with '*' is compared with the whole
  /// module name, "*" is every linear of the part. Embedding tables, the patch embedding and the
  /// output head are none.
  std::map<Part, std::vector<std::string>> targets;

  double scale() const { return alpha / static_cast<double>(rank); }
  bool operator==(const LoraOptions&) const = default;
};

/// Adds the parameters "<module>.lora_A.weight" and "<module>.lora_B.weight" for every linear layer
/// that some segment runs and some target names, behind those that exist, and makes the segments
/// use them. Works on any model: layers reach their adapter through ParamView::adapter. FLOPs: the
/// adapters' products are added for the rows that the segment's own matrices see; a frozen base
/// costs no weight gradient. Call once, before anything is sized by the parameters. Throws
/// UsageError for a target that names no linear layer, and for a rank that is not below the sides
/// of a layer.
void add_lora(Model& model, const LoraOptions& options);

/// One flag per parameter: it is the A or B of some adapter.
std::vector<bool> adapter_params(const Model& model);

/// Whether any adapter belongs to a weight of this part.
bool has_adapters(const Model& model, Part part);

}  // namespace mm::model
