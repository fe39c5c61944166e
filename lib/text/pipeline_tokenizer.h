#pragma once
#include <memory>
#include <vector>

#include "lib/text/added_tokens.h"
#include "lib/text/decoder.h"
#include "lib/text/normalizer.h"
#include "lib/text/post_processor.h"
#include "lib/text/pre_tokenizer.h"
#include "lib/text/text_model.h"
#include "lib/text/tokenizer.h"
#include "lib/text/vocabulary.h"

namespace mm::text {

/// The parts of a tokenizer, in the order in which a text meets them: added tokens are cut out, the
/// rest is normalised, cut into words, and the model gives words their ids.
struct TokenizerParts {
  std::vector<AddedToken> added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  /// On the heap, since the model refers to it.
  std::unique_ptr<Vocabulary> vocabulary;
  std::unique_ptr<TextModel> model;
  Wrapping wrapping;
  Decoder decoder;
  int32_t bos = -1, eos = -1, unk = -1, pad = -1;
};

/// Adds options.extra_marks to the added tokens, each special.
std::unique_ptr<Tokenizer> make_pipeline_tokenizer(TokenizerParts parts,
                                                   const TokenizerOptions& options);

/// Ids of the added tokens by their usual spellings, -1 for what is not there.
void find_usual_ids(TokenizerParts& parts);

}  // namespace mm::text
