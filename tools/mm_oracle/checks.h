#pragma once
#include <ATen/core/Tensor.h>

#include <set>
#include <string>

#include "tools/mm_oracle/report.h"

namespace mm::oracle {

/// |got - want|_2 / |want|_2 over the whole tensor, in float64; infinite when shapes differ.
double relative_error(const at::Tensor& got, const at::Tensor& want);
/// Largest |got - want| over the largest |want|.
double largest_error(const at::Tensor& got, const at::Tensor& want);
double relative_error(double got, double want);
/// L2 norm in float64.
double l2(const at::Tensor& tensor);

/// Same members; else a note that names the first of each side that the other lacks.
void check_names(Report& report, const std::string& name, const std::set<std::string>& got,
                 const std::set<std::string>& want);

}  // namespace mm::oracle
