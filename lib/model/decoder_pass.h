#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/model/block.h"
#include "lib/model/kv_cache.h"

namespace mm::model {

/// Prompts and what follows them, token by token, over one key/value cache. Rows are samples or
/// beams of samples. One thread.
class DecoderPass {
 public:
  /// `prompts` must outlive the object; its samples must not be empty (InternalError). At most
  /// `max_new_tokens` follow.
  DecoderPass(const Model& model, const ParamView& params, const Batch& prompts,
              int64_t max_new_tokens);

  /// Runs the prompts: logits [samples, vocab] of each one's next token.
  at::Tensor start();
  /// One token a row: logits [rows, vocab] of the next.
  at::Tensor next(const std::vector<int64_t>& tokens);
  /// Row i becomes what row rows[i] was; rows may be left out or doubled.
  void select(const std::vector<int64_t>& rows);
  int64_t rows() const { return static_cast<int64_t>(cache_.lengths.size()); }

 private:
  at::Tensor run(const Batch& batch);

  const Model& model_;
  const ParamView& params_;
  const Batch& prompts_;
  KvCache cache_;
  std::vector<int64_t> positions_;  ///< of each row's next token
};

}  // namespace mm::model
