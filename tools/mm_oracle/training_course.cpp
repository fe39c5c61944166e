#include "tools/mm_oracle/training_course.h"

#include <ATen/ATen.h>

#include <limits>
#include <map>
#include <optional>

#include "lib/base/error.h"
#include "lib/model/eager.h"
#include "lib/optim/ema.h"
#include "lib/optim/flat_grad_sink.h"
#include "lib/optim/grad_norm.h"
#include "lib/optim/param_store.h"
#include "tools/mm_oracle/checks.h"

namespace mm::oracle {
namespace {

constexpr double kLossTolerance = 5e-5, kChangeTolerance = 1e-2;

std::map<model::Part, double> same_rate(double lr) {
  std::map<model::Part, double> rates;
  for (model::Part part : model::kAllParts) rates[part] = lr;
  return rates;
}

}  // namespace

Hyper read_hyper(Folder& folder) {
  const Json name = folder.take("optimizer/name");
  if (name != "AdamW") throw DataError("{}: expected AdamW", folder.directory().string());
  const auto betas = folder.numbers("optimizer/betas");
  const double steps = folder.number("optimizer/steps");
  if (betas.size() != 2 || steps < 1 || steps > 1000)
    throw DataError("{}: optimizer: odd betas or steps", folder.directory().string());
  const Json clip = folder.take("optimizer/clip_global_norm");
  return {{.beta1 = betas[0],
           .beta2 = betas[1],
           .eps = folder.number("optimizer/eps"),
           .weight_decay = folder.number("optimizer/weight_decay")},
          folder.number("optimizer/lr"),
          clip.is_null() ? 0.0 : clip.get<double>(),
          static_cast<int>(steps)};
}

Course run_course(const Training& training, const Hyper& hyper) {
  Course course;
  const model::Model& m = training.model;
  optim::ParamStore params(m, {.master = training.dtype, .compute = training.dtype});
  const auto count = static_cast<model::ParamId>(m.params.size());
  for (model::ParamId id = 0; id < count; ++id) params.set(id, training.start[id]);
  params.set_trainable(training.trainable);
  optim::FlatGradSink grads(m, training.trainable, {.accumulate = training.dtype});
  optim::AdamW optimizer(params, grads, hyper.adamw);
  std::optional<optim::Ema> ema;
  if (training.ema_decay > 0) ema.emplace(params, optim::EmaOptions{.decay = training.ema_decay});
  const auto mean = [&](const model::SlotValues& slots) {
    return slots[m.loss_slot].item<double>() / training.targets;
  };
  for (int step = 0; step < hyper.steps; ++step) {
    grads.zero();
    course.losses.push_back(mean(model::eager_train(
        {m, params, training.trainable, grads, 1.0 / training.targets}, training.batch(step))));
    course.norms.push_back(optim::grad_norm(grads.buckets()));
    optim::scale_grads(grads.buckets(), optim::clip_factor(course.norms.back(), hyper.clip));
    optimizer.update(same_rate(hyper.lr));
    if (ema) ema->update();
  }
  course.loss_after = mean(model::eager_forward(m, params, training.batch(hyper.steps)));
  for (model::ParamId id = 0; id < count; ++id) {
    course.values.push_back(params.master(id).clone());
    if (!ema) continue;
    const at::Tensor average = ema->average(id);
    course.averages.push_back(average.defined() ? average : course.values.back());
  }
  return course;
}

double worst_error(const std::vector<double>& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, relative_error(got[i], want[i]));
  return worst;
}

void check_losses(Folder& folder, const Course& course, const std::string& path, bool wide,
                  Report& report) {
  const std::string suffix = wide ? "_float64" : "";
  const std::string losses = path + "/losses" + suffix, after = path + "/loss_after" + suffix;
  report.number(losses, worst_error(course.losses, folder.numbers(losses)), kLossTolerance, "rel");
  report.number(after, relative_error(course.loss_after, folder.number(after)), kLossTolerance,
                "rel");
}

void check_change_lengths(Folder& folder, const Way& way, const std::string& path,
                          const std::set<std::string>& skip, Report& report) {
  const Json want = folder.take(path);
  std::set<std::string> moved, expected;
  for (const auto& [name, length] : want.items()) {
    if (!skip.contains(name)) expected.insert(name);
  }
  for (size_t i = 0; i < way.end.size(); ++i) {
    const std::string& name = way.model.params[i].name;
    const double length = l2(way.end[i].to(at::kDouble) - way.start[i].to(at::kDouble));
    if (length == 0 || skip.contains(name)) continue;
    moved.insert(name);
    if (want.contains(name))
      report.number(path + "/" + name, relative_error(length, want.at(name).get<double>()),
                    kChangeTolerance, "rel");
  }
  check_names(report, path, moved, expected);
}

void check_changed_tensors(Folder& folder, const Way& way, const std::string& prefix,
                           const std::set<std::string>& skip, Report& report) {
  for (const std::string& key : folder.tensor_names(prefix)) {
    const model::ParamId id = model::find_param(way.model, key.substr(prefix.size()));
    const at::Tensor start = way.start[id].to(at::kDouble);
    const at::Tensor want = folder.tensor(key).to(at::kDouble) - start;
    if (skip.contains(way.model.params[id].name)) continue;
    report.number(key, relative_error(way.end[id].to(at::kDouble) - start, want), kChangeTolerance,
                  "rel of change");
  }
}

}  // namespace mm::oracle
