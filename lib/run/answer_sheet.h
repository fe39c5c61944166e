#pragma once
#include <cstddef>
#include <string>

#include "lib/run/eval_result.h"

namespace mm::run {

/// The first `count` held-out pictures as one SVG file for a README or a slide: each picture with
/// its true name, and below it the model's name in green where it is right, in red where it is not;
/// the trained model's scores as the last line. Pictures are embedded, nothing is fetched.
std::string draw_answer_sheet(const EvalResult& evaluation, size_t count);

}  // namespace mm::run
