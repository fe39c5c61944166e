#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/ckpt/dtype.h"

namespace mm::mmckpt {

/// What verbs that write a directory have in common.
struct OutputOptions {
  std::string out, dtype = "keep";
  uint64_t max_shard_bytes = 5'000'000'000;  ///< of tensors in one file
  bool json = false;

  /// Of all floating-point tensors; nothing: each keeps its own.
  std::optional<ckpt::DType> element_type() const;
};

/// OUT, --dtype, --max-shard-size and --json. `options` must outlive the verb.
void add_output_options(CLI::App& verb, OutputOptions& options);

}  // namespace mm::mmckpt
