#pragma once
#include <vector>

#include "lib/model/decoder_pass.h"
#include "lib/model/generate.h"

namespace mm::model {

/// The beam search of `generate`: all samples and their beams run together, finished samples leave.
std::vector<std::vector<int64_t>> beam_search(DecoderPass& pass, int64_t samples,
                                              const GenerateOptions& options);

}  // namespace mm::model
