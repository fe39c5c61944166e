#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/model/block.h"

namespace mm::optim {

/// Turns the sink's gradients into new masters and compute copies. Made for one trainable set.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One update of all trainable parameters, then the compute copies. `rates` holds the learning
  /// rate of every part that trains. Not calling it leaves everything as it is, to the bit.
  virtual void update(const std::map<model::Part, double>& rates) = 0;

  virtual int64_t update_count() const = 0;
  /// When a saved state is loaded.
  virtual void set_update_count(int64_t count) = 0;

  /// State of a parameter besides its value, in its shape, to be saved and loaded in place.
  struct Moment {
    std::string name;  ///< "exp_avg"
    at::Tensor value;
  };
  /// None for frozen parameters.
  virtual std::vector<Moment> moments(model::ParamId id) const = 0;
};

}  // namespace mm::optim
