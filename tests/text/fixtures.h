#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer.h"

namespace mm::text::testing {

using Ids = std::vector<int32_t>;

/// A file below tests/.
std::string fixture(const std::filesystem::path& name);

/// The word tokenizer of the field cases: <pad> 0, <s> 1, </s> 2, <unk> 3, USER: 4, ASSISTANT: 5,
/// <image> 6, what 7, is 8, this 9, a 10, cat 11, dog 12, and 13, that 14, no 15, yes 16, red 17.
/// Its post-processor adds <s>.
std::unique_ptr<Tokenizer> toy_words();

/// A tokenizer of oracles/tokenizers.
std::unique_ptr<Tokenizer> oracle_tokenizer(const std::filesystem::path& file,
                                            const TokenizerOptions& options = {});

/// `text` with the first `from` replaced by `to`; fails the test if there is none.
std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace mm::text::testing
