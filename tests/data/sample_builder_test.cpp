#include "lib/data/sample_builder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/data/record_from_json.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

using Built = std::variant<BuiltSample, LedgerEntry>;

/// Builds one row against tests/field with the toy tokenizer.
Built build(const mm::Json& row, const PackOptions& options) {
  const auto tokenizer = mm::text::load_tokenizer(options.tokenizer);
  const SampleBuilder builder(options, *tokenizer);
  return builder.build(std::get<Record>(record_from_json(row, 0)));
}

PackOptions options_of(int32_t side, int32_t patch, int32_t max_length) {
  PackOptions options = toy_options("unused.jsonl");
  options.pictures.side = side;
  options.pictures.patch = patch;
  options.max_length = max_length;
  return options;
}

int64_t placeholders(const BuiltSample& sample) {
  const auto decoded = decode_sample(std::as_bytes(std::span(sample.payload)),
                                     static_cast<uint32_t>(sample.size.tokens));
  return std::count(decoded.text.tokens.begin(), decoded.text.tokens.end(), 6);
}

}  // namespace

TEST_CASE("C13: placeholders of a packed picture are floor(side / patch) squared") {
  const mm::Json row = {{"image", "rgba.png"}, {"text", "a cat"}};
  const std::vector<std::array<int32_t, 3>> cases = {
      {336, 14, 576}, {224, 14, 256}, {224, 32, 49}, {224, 16, 196}, {384, 14, 729}};
  for (const auto& [side, patch, expected] : cases) {
    const auto built = build(row, options_of(side, patch, 1000));
    CHECK(placeholders(std::get<BuiltSample>(built)) == expected);
  }
}

TEST_CASE(
    "C13: marks and pictures that do not match are a bad sample with both counts, at packing "
    "time") {
  const auto turns = [](const char* user) {
    return mm::Json{{{"from", "human"}, {"value", user}}, {{"from", "gpt"}, {"value", "a cat"}}};
  };
  for (const char* user : {"<image> and <image> what", "what is this"}) {
    const auto built =
        build({{"image", "rgba.png"}, {"conversations", turns(user)}}, options_of(8, 4, 100));
    REQUIRE(std::holds_alternative<LedgerEntry>(built));
    const auto& entry = std::get<LedgerEntry>(built);
    CHECK(entry.kind == "image_count");
    CHECK(entry.message.find('1') != std::string::npos);
  }
}

TEST_CASE("C15: no limit leaves part of a picture in a packed sample") {
  std::string caption = "a";
  for (int i = 1; i < 20; ++i) caption += " cat";
  const mm::Json row = {{"image", "rgba.png"}, {"text", caption}};
  const auto whole = std::get<BuiltSample>(build(row, options_of(336, 14, 2048)));
  CHECK(whole.size.targets >= 20);
  for (const int32_t limit : {590, 578, 577, 576, 500, 10}) {
    const auto built = build(row, options_of(336, 14, limit));
    if (const auto* sample = std::get_if<BuiltSample>(&built)) {
      CHECK(placeholders(*sample) == 576);
      CHECK(sample->size.tokens <= limit);
      CHECK(sample->size.targets == limit - 577);
    } else {
      const auto& entry = std::get<LedgerEntry>(built);
      CHECK(limit <= 577);
      CHECK((entry.kind == "no_targets" || entry.kind == "too_long"));
    }
  }
}

TEST_CASE(
    "sample builder: missing pictures and paths out of the root are refused with their path") {
  for (const auto& [image, kind] :
       {std::pair{"no.png", "missing"}, std::pair{"../CMakeLists.txt", "outside_root"}}) {
    const auto built = build({{"image", image}, {"text", "a cat"}}, options_of(8, 4, 100));
    REQUIRE(std::holds_alternative<LedgerEntry>(built));
    CHECK(std::get<LedgerEntry>(built).kind == kind);
    CHECK(std::get<LedgerEntry>(built).path == image);
  }
}
