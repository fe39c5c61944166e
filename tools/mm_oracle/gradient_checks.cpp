#include "tools/mm_oracle/gradient_checks.h"

#include <cmath>
#include <limits>

#include "tools/mm_oracle/checks.h"

namespace mm::oracle {
namespace {

constexpr double kTolerance = 1e-4, kNullShare = 1e-6;

}  // namespace

Gradients gradients_of(const model::Model& model, const model::SimpleParams& params) {
  Gradients out;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const at::Tensor& g = params.grad(static_cast<int>(i));
    if (!g.defined()) continue;
    out.by_name[model.params[i].name] = g;
    out.total += std::pow(l2(g), 2);
  }
  out.total = std::sqrt(out.total);
  return out;
}

void check_gradients(Folder& folder, const GradientPlace& place, const Gradients& got,
                     const std::set<std::string>& null_params, Report& report) {
  const std::string path = place.path + "/l2";
  const Json norms = folder.take(path);
  std::set<std::string> names, expected;
  for (const auto& [name, norm] : norms.items()) {
    if (!null_params.contains(name) || got.by_name.contains(name)) expected.insert(name);
  }
  for (const auto& [name, g] : got.by_name) names.insert(name);
  check_names(report, path, names, expected);
  for (const auto& [name, g] : got.by_name) {
    const bool null = null_params.contains(name);
    if (null)
      report.number(path + "/" + name + " (null)", l2(g) / got.total, kNullShare, "of total");
    if (null || !norms.contains(name)) continue;
    report.number(path + "/" + name, relative_error(l2(g), norms.at(name).get<double>()),
                  kTolerance, "rel");
  }
  const std::string total = place.path + "/total_l2";
  report.number(total, relative_error(got.total, folder.number(total)), kTolerance, "rel");
  for (const std::string& key : folder.tensor_names(place.tensors)) {
    const at::Tensor want = folder.tensor(key);
    const std::string name = key.substr(place.tensors.size());
    const auto it = got.by_name.find(name);
    if (null_params.contains(name)) continue;
    const double error = it == got.by_name.end() ? std::numeric_limits<double>::infinity()
                                                 : relative_error(it->second, want);
    report.number(key, error, kTolerance, "rel");
  }
}

}  // namespace mm::oracle
