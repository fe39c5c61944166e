#include "tools/mm_oracle/checks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace mm::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double ratio(double error, double scale) {
  if (error == 0) return 0;
  return scale > 0 ? error / scale : kInfinity;
}

std::string first_missing(const std::set<std::string>& from, const std::set<std::string>& in) {
  const auto it =
      std::ranges::find_if(from, [&](const std::string& name) { return !in.contains(name); });
  return it == from.end() ? "" : *it;
}

}  // namespace

double l2(const at::Tensor& tensor) { return tensor.to(at::kDouble).norm().item<double>(); }

double relative_error(const at::Tensor& got, const at::Tensor& want) {
  if (got.sizes() != want.sizes()) return kInfinity;
  return ratio(l2(got.to(at::kDouble) - want.to(at::kDouble)), l2(want));
}

double largest_error(const at::Tensor& got, const at::Tensor& want) {
  if (got.sizes() != want.sizes()) return kInfinity;
  if (want.numel() == 0) return 0;
  const double error = (got.to(at::kDouble) - want.to(at::kDouble)).abs().max().item<double>();
  return ratio(error, want.to(at::kDouble).abs().max().item<double>());
}

double relative_error(double got, double want) {
  return ratio(std::abs(got - want), std::abs(want));
}

void check_names(Report& report, const std::string& name, const std::set<std::string>& got,
                 const std::set<std::string>& want) {
  std::string note;
  if (const std::string missing = first_missing(want, got); !missing.empty())
    note += "lacks " + missing + " ";
  if (const std::string extra = first_missing(got, want); !extra.empty())
    note += "has " + extra + " in addition";
  report.exact(name, got == want, note);
}

}  // namespace mm::oracle
