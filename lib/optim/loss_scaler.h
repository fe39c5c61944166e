#pragma once
#include <cstdint>

namespace mm::optim {

/// The factor that keeps fp16 gradients above fp16's smallest number: a power of two that the loss
/// is multiplied by and the gradients are divided by before they are looked at. One for all ranks,
/// since all see the same reduced gradients.
class LossScaler {
 public:
  struct State {
    double scale = 65536;
    int64_t good_steps = 0;  ///< since the last change
    friend bool operator==(const State&, const State&) = default;
  };

  /// `growth_steps` updates without an overflow double the scale; 0: it never grows.
  LossScaler(double initial_scale, int64_t growth_steps);

  double scale() const { return state_.scale; }
  /// The scale can fall no further: an overflow now comes of the values, and would come for ever.
  bool at_smallest() const;
  /// A step is over. With an overflow its gradients are of no use: the update is left out and the
  /// scale halved, down to 2^-24 at least; else it counts towards growth, up to 2^24 at most.
  void step_done(bool overflow);

  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  State state_;
  int64_t growth_steps_;
};

}  // namespace mm::optim
