#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <memory>

#include "lib/optim/adamw.h"
#include "lib/optim/flat_grad_sink.h"
#include "lib/optim/lion.h"
#include "lib/optim/param_store.h"
#include "tests/optim/toy_params.h"

namespace mm::optim {
namespace {

// Tower frozen, projector trained, of the language block only the norm.
std::vector<bool> flags() {
  std::vector<bool> trainable(toy_model().params.size(), false);
  trainable[kProjector] = trainable[kNorm] = true;
  return trainable;
}

const std::map<model::Part, double> kRates = {{model::Part::kProjector, 1e-2},
                                              {model::Part::kLanguage, 1e-2}};

/// Three updates with weight decay 0.1; the gradients depend on the step alone.
void train(FlatGradSink& sink, Optimizer& optimizer) {
  for (int step = 0; step < 3; ++step) {
    sink.zero();
    for (const model::ParamId id : {kProjector, kNorm}) {
      const at::Tensor grad = sink.gradient(id);
      sink.add(id, at::cos(at::arange(grad.numel(), grad.options()) + step).view(grad.sizes()));
    }
    optimizer.update(kRates);
  }
}

}  // namespace

TEST_CASE("C41: frozen weights beside trained ones of their part keep their bits, have no state") {
  const model::Model model = toy_model();
  for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    for (const bool lion : {false, true}) {
      ParamStore store(model, {.master = at::kFloat, .compute = compute}, flags());
      store.initialise(4);
      std::vector<at::Tensor> before;
      for (size_t i = 0; i < model.params.size(); ++i)
        before.push_back(store.master(static_cast<model::ParamId>(i)).clone());
      store.set_trainable(flags());
      FlatGradSink sink(model, flags(), {});
      std::unique_ptr<Optimizer> optimizer;
      if (lion) {
        optimizer = std::make_unique<Lion>(store, sink, LionOptions{.weight_decay = 0.1});
      } else {
        optimizer = std::make_unique<AdamW>(store, sink, AdamWOptions{.weight_decay = 0.1});
      }
      train(sink, *optimizer);
      for (size_t i = 0; i < model.params.size(); ++i) {
        const auto id = static_cast<model::ParamId>(i);
        CAPTURE(model.params[i].name);
        CHECK(store.master(id).equal(before[i]) == !flags()[i]);
        CHECK(store.get(id).equal(store.master(id).to(compute)));
        CHECK(optimizer->moments(id).empty() == !flags()[i]);
      }
    }
  }
}

}  // namespace mm::optim
