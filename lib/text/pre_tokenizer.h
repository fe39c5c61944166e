#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/aligned_text.h"
#include "lib/text/function_ref.h"
#include "lib/text/pattern.h"

namespace mm::text {

/// Cuts a normalised text into words: a list of steps, each from a piece to pieces. Immutable after
/// loading, thread-safe.
class PreTokenizer {
 public:
  using Sink = FunctionRef<void(TextView word)>;
  /// `first` says that the piece may begin the whole text (its source byte 0 does).
  using Step = std::function<void(TextView piece, bool first, Sink out)>;

  void add(Step step) { steps_.push_back(std::move(step)); }
  /// Words are bytes for a byte-level vocabulary.
  bool byte_level() const { return byte_level_; }
  void set_byte_level() { byte_level_ = true; }

  /// Calls word for each piece in order, none empty. `at_start`: the source is the beginning of a
  /// sequence.
  void cut(TextView text, bool at_start, Sink word) const { run(0, text, at_start, word); }

 private:
  void run(size_t step, TextView piece, bool at_start, Sink word) const;

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

/// Where Metaspace puts a sign although no blank stands there: before every text, before the one
/// that begins the sequence, or nowhere.
enum class Prepend { kAlways, kFirst, kNever };

namespace steps {

PreTokenizer::Step cut_at(Pattern pattern, SplitBehavior behavior, bool invert);
/// Characters that satisfy the predicate are the matches.
PreTokenizer::Step cut_at(bool (*predicate)(char32_t), SplitBehavior behavior);
/// A blank in front of pieces that do not begin with one.
PreTokenizer::Step prefix_blank();
/// Blanks become `sign`; `split` cuts before each sign.
PreTokenizer::Step metaspace(std::string sign, Prepend prepend, bool split);

}  // namespace steps

/// Reads the "pre_tokenizer" of a tokenizer.json (null: the text is one word). Throws DataError
/// naming what is unknown.
PreTokenizer read_pre_tokenizer(const nlohmann::json& json, std::string_view origin);

/// GPT-2's pattern, which ByteLevel implies.
extern const char* const kGpt2Pattern;

}  // namespace mm::text
