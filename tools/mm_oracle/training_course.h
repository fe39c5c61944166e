#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lib/model/block.h"
#include "lib/optim/adamw.h"
#include "tools/mm_oracle/folder.h"
#include "tools/mm_oracle/report.h"

namespace mm::oracle {

/// What "optimizer" of a folder says.
struct Hyper {
  optim::AdamWOptions adamw;
  double lr = 0, clip = 0;  ///< clip 0: none
  int steps = 0;
};
/// Throws DataError for another optimizer or odd numbers.
Hyper read_hyper(Folder& folder);

/// Some AdamW steps of a model, each on one micro-batch.
struct Training {
  const model::Model& model;
  const std::vector<at::Tensor>& start;  ///< by ParamId
  std::vector<bool> trainable;
  at::ScalarType dtype = at::kFloat;
  double targets = 1;  ///< what the sum of losses is divided by
  std::function<model::Batch(int step)> batch;
  double ema_decay = 0;  ///< 0: no averages
};
struct Course {
  std::vector<double> losses, norms;
  double loss_after = 0;
  std::vector<at::Tensor> values, averages;  ///< by ParamId
};
Course run_course(const Training& training, const Hyper& hyper);

/// Losses of every step and after the last, at `path`; in float64 the "_float64" ones.
void check_losses(Folder& folder, const Course& course, const std::string& path, bool wide,
                  Report& report);
/// Largest relative error over a list of steps; infinite for another number of steps.
double worst_error(const std::vector<double>& got, const std::vector<double>& want);

/// How far each parameter went from `start` to `end`: its length, at `path`. Parameters of `skip`
/// are left out.
struct Way {
  const model::Model& model;
  const std::vector<at::Tensor>&start, &end;
};
void check_change_lengths(Folder& folder, const Way& way, const std::string& path,
                          const std::set<std::string>& skip, Report& report);
/// The stored tensors behind `prefix`, as changes from the start.
void check_changed_tensors(Folder& folder, const Way& way, const std::string& prefix,
                           const std::set<std::string>& skip, Report& report);

}  // namespace mm::oracle
