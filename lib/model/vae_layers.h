#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lib/model/block.h"
#include "lib/model/linear.h"

namespace mm::model {

// The layers of an autoencoder. x: [N, C, h, w]; GroupNorm eps is 1e-6 throughout.

struct Convolution {
  ParamId weight = -1, bias = -1;
  int64_t in = 0, out = 0, side = 1;  ///< channels, kernel side
  int64_t stride = 1;                 ///< 2 pads by one on the right and below only
};
struct GroupNorm {
  ParamId weight = -1, bias = -1;
  int64_t groups = 1, channels = 0;
};
/// norm, SiLU, conv 3x3, norm, SiLU, conv 3x3, plus the input (through a 1x1 convolution where
/// widths differ).
struct ResNet {
  GroupNorm norm1, norm2;
  Convolution conv1, conv2, shortcut;  ///< shortcut.weight -1: none
};
/// One head over all pixels, behind a norm, plus the input.
struct PixelAttention {
  GroupNorm norm;
  Linear q, k, v, out;
};

at::Tensor apply(const Convolution& layer, const ParamView& params, const at::Tensor& x);
at::Tensor apply(const GroupNorm& layer, const ParamView& params, const at::Tensor& x);
at::Tensor apply(const ResNet& layer, const ParamView& params, const at::Tensor& x);
at::Tensor apply(const PixelAttention& layer, const ParamView& params, const at::Tensor& x);
/// Each pixel four times: [N, C, 2h, 2w].
at::Tensor twice_as_large(const at::Tensor& x);

/// Declares layers of Part::kVae under names that begin with `prefix`.
class VaeDeclare {
 public:
  VaeDeclare(Model& model, std::string prefix, int64_t groups)
      : model_(model), prefix_(std::move(prefix)), groups_(groups) {}

  struct Widths {
    int64_t in = 0, out = 0;
  };
  Convolution conv(const std::string& name, Widths widths, int64_t side, int64_t stride = 1);
  GroupNorm norm(const std::string& name, int64_t channels);
  ResNet resnet(const std::string& name, Widths widths);
  /// to_q, to_k, to_v, to_out.0 as linear layers; older spellings are settled when a file is read.
  PixelAttention attention(const std::string& name, int64_t channels);

 private:
  Linear linear(const std::string& name, int64_t channels);
  ParamId tensor(const std::string& name, std::vector<int64_t> shape, Init init);

  Model& model_;
  std::string prefix_;
  int64_t groups_;
};

void append_params(std::vector<ParamId>& list, const Convolution& layer);
void append_params(std::vector<ParamId>& list, const GroupNorm& layer);
void append_params(std::vector<ParamId>& list, const ResNet& layer);
void append_params(std::vector<ParamId>& list, const PixelAttention& layer);

/// Multiply-adds of the products for one pixel of the layer's output, biases apart.
double weights_of(const Convolution& layer);
double weights_of(const ResNet& layer);

}  // namespace mm::model
