#include "tools/mm_oracle/llava_training.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/optim/adamw.h"
#include "lib/optim/flat_grad_sink.h"
#include "lib/optim/grad_norm.h"
#include "lib/optim/param_store.h"
#include "tools/mm_oracle/checks.h"

namespace mm::oracle {
namespace {

struct Hyper {
  optim::AdamWOptions adamw;
  double lr = 0, clip = 0;
  int steps = 0;
};

Hyper read_hyper(Folder& folder) {
  const Json name = folder.take("optimizer/name"),
             same = folder.take("optimizer/same_batch_every_step");
  if (name != "AdamW" || same != true)
    throw DataError("{}: expected AdamW on one batch", folder.directory().string());
  const auto betas = folder.numbers("optimizer/betas");
  const double steps = folder.number("optimizer/steps");
  if (betas.size() != 2 || steps < 1 || steps > 1000)
    throw DataError("{}: optimizer: odd betas or steps", folder.directory().string());
  return {{.beta1 = betas[0],
           .beta2 = betas[1],
           .eps = folder.number("optimizer/eps"),
           .weight_decay = folder.number("optimizer/weight_decay")},
          folder.number("optimizer/lr"),
          folder.number("optimizer/clip_global_norm"),
          static_cast<int>(steps)};
}

struct Course {
  std::vector<double> losses, norms;
  double loss_after = 0;
  std::vector<at::Tensor> values;  ///< by ParamId
};

double loss_of(const LlavaCase& c, const model::SlotValues& slots) {
  return slots[c.loaded.model.loss_slot].item<double>() / c.targets;
}

Course train(const LlavaCase& c, const std::vector<bool>& trainable, const Hyper& hyper) {
  Course course;
  const model::Model& m = c.loaded.model;
  optim::ParamStore params(m, {.master = c.dtype, .compute = c.dtype});
  for (size_t i = 0; i < trainable.size(); ++i) params.set(static_cast<int>(i), c.loaded.values[i]);
  params.set_trainable(trainable);
  optim::FlatGradSink grads(m, trainable, {.accumulate = c.dtype});
  optim::AdamW optimizer(params, grads, hyper.adamw);
  for (int step = 0; step < hyper.steps; ++step) {
    grads.zero();
    course.losses.push_back(
        loss_of(c, model::eager_train({m, params, trainable, grads, 1.0 / c.targets}, c.batch)));
    course.norms.push_back(optim::grad_norm(grads.buckets()));
    optim::scale_grads(grads.buckets(), optim::clip_factor(course.norms.back(), hyper.clip));
    optimizer.update({{model::Part::kVision, hyper.lr},
                      {model::Part::kProjector, hyper.lr},
                      {model::Part::kLanguage, hyper.lr}});
  }
  course.loss_after = loss_of(c, model::eager_forward(m, params, c.batch));
  for (size_t i = 0; i < trainable.size(); ++i)
    course.values.push_back(params.master(static_cast<int>(i)).clone());
  return course;
}

// Largest relative error over a list of steps.
double worst(const std::vector<double>& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, relative_error(got[i], want[i]));
  return worst;
}

void check_changes(Folder& folder, const LlavaCase& c, const Course& course, const std::string& at,
                   const std::set<std::string>& null_params, Report& report) {
  const std::string path = at + "/param_change_l2";
  const Json want = folder.take(path);
  std::set<std::string> moved, expected;
  for (const auto& [name, length] : want.items()) {
    if (!null_params.contains(name)) expected.insert(name);
  }
  for (size_t i = 0; i < course.values.size(); ++i) {
    const std::string& name = c.name(static_cast<int>(i));
    const double length = l2(course.values[i].to(at::kDouble) - c.loaded.values[i].to(at::kDouble));
    if (length == 0 || null_params.contains(name)) continue;
    moved.insert(name);
    if (want.contains(name))
      report.number(path + "/" + name, relative_error(length, want.at(name).get<double>()), 1e-2,
                    "rel");
  }
  check_names(report, path, moved, expected);
}

void check_after(Folder& folder, const LlavaCase& c, const Course& course, const std::string& tag,
                 Report& report) {
  const std::string prefix = "after10/" + tag + "/";
  for (const std::string& key : folder.tensor_names(prefix)) {
    const model::ParamId id = model::find_param(c.loaded.model, key.substr(prefix.size()));
    const at::Tensor start = c.loaded.values[id].to(at::kDouble);
    const at::Tensor want = folder.tensor(key).to(at::kDouble) - start;
    report.number(key, relative_error(course.values[id].to(at::kDouble) - start, want), 1e-2,
                  "rel of change");
  }
}

void check_run(Folder& folder, const LlavaCase& c, const Hyper& hyper, const std::string& tag,
               const std::set<std::string>& null_params, Report& report) {
  if (tag != "vision_frozen" && tag != "all_trained") return;
  // What no segment reads gets no gradient and must not decay.
  std::vector<bool> trainable = model::params_in_use(c.loaded.model);
  for (size_t i = 0; i < trainable.size(); ++i) {
    if (tag == "vision_frozen" && c.loaded.model.params[i].part == model::Part::kVision)
      trainable[i] = false;
  }
  const Course course = train(c, trainable, hyper);
  const std::string at = "train/" + tag;
  if (c.dtype == at::kDouble) {
    report.number(at + "/losses_float64",
                  worst(course.losses, folder.numbers(at + "/losses_float64")), 5e-5, "rel");
    report.number(at + "/loss_after_float64",
                  relative_error(course.loss_after, folder.number(at + "/loss_after_float64")),
                  5e-5, "rel");
    return;
  }
  report.number(at + "/losses", worst(course.losses, folder.numbers(at + "/losses")), 5e-5, "rel");
  report.number(at + "/loss_after",
                relative_error(course.loss_after, folder.number(at + "/loss_after")), 5e-5, "rel");
  report.number(at + "/grad_norms_before_clip",
                worst(course.norms, folder.numbers(at + "/grad_norms_before_clip")), 1e-3, "rel");
  check_changes(folder, c, course, at, null_params, report);
  check_after(folder, c, course, tag, report);
  folder.set_aside({(at + "/measured_worst_rel_loss_vs_float64").c_str(),
                    (at + "/measured_rel_param_change_vs_float64").c_str()});
}

}  // namespace

void check_training(Folder& folder, const std::set<std::string>& null_params, Report& report) {
  const Hyper hyper = read_hyper(folder);
  for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const LlavaCase c = read_llava_case(folder, dtype);
    for (const std::string& tag : folder.keys("train"))
      check_run(folder, c, hyper, tag, null_params, report);
  }
}

}  // namespace mm::oracle
