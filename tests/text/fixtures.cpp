#include "tests/text/fixtures.h"

#include <doctest/doctest.h>

#include "lib/base/file.h"

namespace mm::text::testing {

std::string fixture(const std::filesystem::path& name) {
  return read_file(std::filesystem::path(MM_TEST_DATA) / name);
}

std::unique_ptr<Tokenizer> toy_words() {
  return load_tokenizer(std::filesystem::path(MM_TEST_DATA) / "text/fixtures/toy_words.json");
}

std::unique_ptr<Tokenizer> oracle_tokenizer(const std::filesystem::path& file,
                                            const TokenizerOptions& options) {
  return load_tokenizer(std::filesystem::path(MM_TEST_DATA) / "oracles/tokenizers" / file, options);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace mm::text::testing
