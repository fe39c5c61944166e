#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/model/block.h"

namespace mm::optim {

/// Dtypes of a run: {fp32, fp32}, {fp32, bf16} (the default of bf16 training: updates below bf16's
/// step still add up), {fp32, fp16}, or {float64, float64} for proofs.
struct Precision {
  at::ScalarType master =
      at::kFloat;  ///< of master weights, gradients and moments: fp32 or float64
  at::ScalarType compute = at::kFloat;  ///< of what forward and backward read
  /// Where parts differ from `compute`, by model::Part; Undefined: as `compute`.
  std::array<at::ScalarType, model::kPartCount> part_compute = no_differences();

  at::ScalarType compute_of(model::Part part) const {
    const at::ScalarType own = part_compute[static_cast<size_t>(part)];
    return own == at::ScalarType::Undefined ? compute : own;
  }
  static constexpr std::array<at::ScalarType, model::kPartCount> no_differences() {
    std::array<at::ScalarType, model::kPartCount> types{};
    types.fill(at::ScalarType::Undefined);
    return types;
  }
};

/// Owns the parameters of a model: master weights in one flat buffer per part, and compute copies,
/// which are the masters themselves when the dtypes agree. A parameter that is never trained has
/// its compute copy alone: rounded once, 2 bytes an element in bf16. Pointers stay valid for the
/// store's life. One thread at a time; `get` may run on several between updates.
class ParamStore final : public model::ParamView {
 public:
  /// `model` must outlive the store. All values are zero and all parameters frozen until told
  /// otherwise.
  /// `masters`: one flag per parameter, whether it has one; those without cannot be trained. Empty:
  /// all have.
  ParamStore(const model::Model& model, const Precision& precision, std::vector<bool> masters = {});

  const model::Model& model() const { return model_; }
  const Precision& precision() const { return precision_; }

  /// Draws every master (model::InitialDraw) and refreshes all compute copies.
  void initialise(uint64_t seed);

  /// Which parameters get gradients: one flag each. Costs nothing but new handles, so stages may
  /// change it; tapes made before it must be gone.
  void set_trainable(std::vector<bool> trainable);
  const std::vector<bool>& trainable() const { return trainable_; }

  at::Tensor get(model::ParamId id) const override { return leaves_.at(static_cast<size_t>(id)); }
  /// The master in its own shape, a view that may be written; then call refresh_compute. One
  /// without: the compute copy, which is all there is of the value.
  at::Tensor master(model::ParamId id) const { return masters_.at(static_cast<size_t>(id)); }
  /// Lets go of all masters but those flagged: no later stage trains the others. Handles stay
  /// valid. Throws InternalError if one of them trains now.
  void keep_masters(const std::vector<bool>& kept);
  /// Bytes of masters and compute copies.
  int64_t size_bytes() const;
  /// Copies `value` (any float dtype) to the master and its compute copy. Throws UsageError naming
  /// both shapes if they differ.
  void set(model::ParamId id, const at::Tensor& value);
  void set(std::string_view name, const at::Tensor& value);

  /// Rounds masters to the compute copies: of the parts that train, or of all. Nothing to do when
  /// they share memory.
  void refresh_compute(bool all = false);

 private:
  struct PartBuffer {
    model::Part part;
    at::Tensor master, compute;  ///< flat; the same tensor when the dtypes agree
    bool whole = true;           ///< every parameter of the part has a master
  };
  void build_part(model::Part part);
  void allocate_masters(PartBuffer& buffer);
  void refresh(PartBuffer& buffer);
  bool part_trains(model::Part part) const;

  const model::Model& model_;
  const Precision precision_;
  std::vector<PartBuffer> parts_;
  std::vector<bool> has_master_;
  std::vector<at::Tensor> masters_, computes_, leaves_;
  std::vector<bool> trainable_;
};

}  // namespace mm::optim
