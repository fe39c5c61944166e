#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/dist/mesh.h"
#include "lib/model/batch.h"

// The joints of every model: slots, segments, boundaries, blocks. docs/architecture.md tells the
// story; PROGRAM order is blocks -> instructions (lib/step). A segment is local computation under
// autograd, detached at both ends.
namespace mm::model {

/// Index of a named value that travels between segments (row of Model::slots).
using Slot = int;
/// Index of a parameter (row of Model::params).
using ParamId = int;

/// How a slot or its gradient lies on a mesh axis (tensor, context, ...). Data parallel keeps all
/// slots whole.
enum class Placement { kWhole, kSplit, kPartial };

/// The part of the model that freezing, learning rates and reports speak of.
enum class Part { kVision, kProjector, kLanguage, kTextEncoder, kTransformer, kVae };
/// In the enum's order.
inline constexpr std::array kAllParts{Part::kVision,      Part::kProjector,   Part::kLanguage,
                                      Part::kTextEncoder, Part::kTransformer, Part::kVae};
inline constexpr size_t kPartCount = kAllParts.size();
const char* part_name(Part part);

/// How a parameter begins (lib/model/initial_draw.h).
enum class Init {
  kNormal,
  kZeros,
  kOnes,
  kXavierUniform,
  kFanInUniform,
  kXavierMatrix,  ///< Xavier of the parameter as a matrix [first dimension, all others]
  kSincosGrid,    ///< fixed positions of a square grid (lib/model/position_table.h)
};

/// A parameter as its block declares it.
struct ParamSpec {
  std::string name;            ///< Hugging Face name, as on disk
  std::vector<int64_t> shape;  ///< global shape
  Part part = Part::kLanguage;
  bool decay = false;  ///< weight decay applies (two or more dimensions)
  Init init = Init::kNormal;
  double init_std = 0.02;  ///< of kNormal; of kSincosGrid: distance of neighbours on the grid
  int split_dim = -1;      ///< dimension that the tensor axis splits, -1: whole
  bool fixed = false;      ///< read but never trained: position tables that lie in the files
};

/// A low-rank addition to the weight W [out, in] of a linear layer (lib/model/lora.h): the layer
/// multiplies with W + scale * b a. `a` [rank, in], `b` [out, rank].
struct Adapter {
  ParamId base = -1, a = -1, b = -1;
  double scale = 1;
};

/// Read access to the compute copies of parameters; reached by handle so that storage may come and
/// go below autograd.
class ParamView {
 public:
  virtual ~ParamView() = default;
  /// The leaf that autograd sees: requires_grad iff trainable. Valid until the segment returns.
  virtual at::Tensor get(ParamId id) const = 0;
  /// What linear layers add to weight `id`; null: nothing.
  virtual const Adapter* adapter(ParamId /*id*/) const { return nullptr; }
  /// What the adapter of weight `id` reads where the layer reads `x`: with dropout in training.
  virtual at::Tensor adapter_input(ParamId /*id*/, const at::Tensor& x) const { return x; }
};

/// Where parameter gradients leave: fp32 (float64 in float64 runs) accumulation. Never `.grad`.
class GradSink {
 public:
  virtual ~GradSink() = default;
  /// Adds `grad` (any float dtype, the parameter's shape). Ascending micro-batch order per
  /// parameter is the caller's duty.
  virtual void add(ParamId id, const at::Tensor& grad) = 0;
};

struct KvCache;

/// What a segment may look at besides its input slots.
struct SegmentContext {
  const ParamView& params;
  const Batch& batch;
  KvCache* kv_cache = nullptr;  ///< set in generation only: keys and values of earlier tokens

  /// The same with other parameters.
  SegmentContext with(const ParamView& other) const { return {other, batch, kv_cache}; }
};

/// FLOPs (2 per multiply-add) and bytes of one segment for a micro-batch of the given sizes;
/// padding is not counted.
struct SegmentCost {
  double forward_flops = 0;
  double attention_flops =
      0;  ///< part of forward_flops without weights: its backward costs 2x whatever is frozen
  double saved_bytes = 0;    ///< activations kept for the backward
  double adapter_flops = 0;  ///< part of forward_flops in adapters, whose weights are trained
};

/// Local computation, no communication. Inputs arrive detached; outputs leave detached.
struct Segment {
  std::string name;
  std::vector<Slot> in, out;
  std::vector<ParamId> params;
  /// Returns one tensor per `out`. Runs under autograd in training, without in evaluation.
  std::function<std::vector<at::Tensor>(const SegmentContext&, std::span<const at::Tensor>)>
      forward;
  std::function<SegmentCost(const Sizes&)> cost;
  /// `out[0]` is a scalar sum of losses; the program seeds its backward with 1 / global targets.
  bool yields_loss = false;
};

/// Communication between segments; none is emitted on an axis of size 1.
struct Boundary {
  Slot slot = -1;
  dist::MeshAxis axis = dist::MeshAxis::kTensor;
  Placement from = Placement::kWhole, to = Placement::kWhole;
};

using Step = std::variant<Segment, Boundary>;

/// The unit of pipeline stages, FSDP units and recompute: one ViT layer, the projector, one decoder
/// layer, the head.
struct Block {
  std::string name;
  Part part = Part::kLanguage;
  std::vector<Step> steps;
};

/// A model as a list of blocks over shared tables of slots and parameters. Block order is program
/// order.
struct Model {
  std::vector<std::string> slots;
  std::vector<ParamSpec> params;
  std::vector<Block> blocks;
  std::vector<Adapter> adapters;  ///< of lib/model/lora.h, in the order of their base weights
  Slot loss_slot = -1;            ///< scalar sum of target losses
  /// [samples] float64, written by the head: sum of each sample's target losses, unweighted,
  /// without a gradient.
  Slot sample_losses_slot = -1;
  Slot logits_slot = -1;  ///< [tokens, vocab], written by the head only when Batch::want_logits

  Slot add_slot(std::string name);
  ParamId add_param(ParamSpec spec);
};

/// Whether a gradient must flow into `slot`: some trainable parameter lies on its producing side.
/// Static: from `trainable` (one flag per parameter), never from tensors. Frozen prefixes therefore
/// cost no backward.
std::vector<bool> slots_needing_grad(const Model& model, const std::vector<bool>& trainable);

/// One flag per parameter: whether some segment reads it and it is not fixed. The others (ViT
/// layers behind the feature layer) are kept and saved, get no gradient, and the optimizer leaves
/// them alone, decay included.
std::vector<bool> params_in_use(const Model& model);

/// Row of the slot or parameter of this name. Throws InternalError if there is none.
Slot find_slot(const Model& model, std::string_view name);
ParamId find_param(const Model& model, std::string_view name);

}  // namespace mm::model
