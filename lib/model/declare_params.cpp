#include "lib/model/declare_params.h"

namespace mm::model {

ParamId DeclareParams::tensor(const std::string& name, std::vector<int64_t> shape, Init init,
                              double std) const {
  const bool decay = shape.size() >= 2;
  return model_.add_param({.name = prefix_ + name,
                           .shape = std::move(shape),
                           .part = part_,
                           .decay = decay,
                           .init = init,
                           .init_std = std});
}

Linear DeclareParams::linear(const std::string& name, int64_t out, int64_t in,
                             LinearInit init) const {
  Init weight = Init::kXavierUniform;
  if (init == LinearInit::kZero) weight = Init::kZeros;
  if (init == LinearInit::kSmallNormal) weight = Init::kNormal;
  return {tensor(name + ".weight", {out, in}, weight), tensor(name + ".bias", {out}, Init::kZeros)};
}

}  // namespace mm::model
