#pragma once
#include "tools/bench_dit/dit_case.h"
#include "tools/bench_main.h"

namespace mm::bench {

/// --layers and --heads of a DiT.
inline void add_dit_shape(CLI::App& app, DitShape& shape) {
  add_number(app, "--layers", shape.layers, "Transformer layers", decltype(shape.layers){1},
             decltype(shape.layers){64});
  add_number(app, "--heads", shape.heads, "Heads of 64", decltype(shape.heads){1},
             decltype(shape.heads){64});
}

}  // namespace mm::bench
