#pragma once
#include <string_view>

namespace mm::text {

/// Refuses a SentencePiece model file that the library would trust too far: walks the protocol
/// buffer and checks pieces (UTF-8, not empty, no NUL, finite score, count) and the normaliser's
/// double-array trie, every reachable state of which must stay inside the array and point to a
/// replacement that exists. Throws DataError with `origin` and the reason. O(file size * 256) at
/// worst, some milliseconds in practice.
///
/// True if the model is a BPE that takes text as it is: no character map, blanks kept, dummy blank
/// in front if at all.
bool check_sentencepiece_model(std::string_view model, std::string_view origin);

}  // namespace mm::text
