#pragma once
#include <array>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/aligned_text.h"
#include "lib/text/normal_form.h"
#include "lib/text/pattern.h"

namespace mm::text {

/// What a tokenizer does to a text before it is cut: a list of steps, each from a text to a text.
/// Immutable after loading, thread-safe.
class Normalizer {
 public:
  /// Appends the new text to `out`, or returns false: nothing to change.
  using Step = std::function<bool(TextView in, AlignedText& out)>;

  void add(Step step) { steps_.push_back(std::move(step)); }
  bool empty() const { return steps_.empty(); }

  /// `in` after all steps. The result lies in `in` or in `buffers`, whose content is replaced.
  TextView apply(TextView in, std::array<AlignedText, 2>& buffers) const;
  std::string apply(std::string_view text) const;

 private:
  std::vector<Step> steps_;
};

namespace steps {

Normalizer::Step normal_form(NormalForm form);
Normalizer::Step lower_case();
/// Without marks (Mn, Mc, Me); what is precomposed keeps its accents.
Normalizer::Step strip_accents();
/// Without white space at the chosen ends.
Normalizer::Step strip(bool left, bool right);
/// Every match becomes `content`.
Normalizer::Step replace(Pattern pattern, std::string content);
/// `prefix` in front of a text that is not empty.
Normalizer::Step prepend(std::string prefix);
/// SentencePiece's clean-up of old NMT data: controls vanish, odd white space becomes a blank.
Normalizer::Step nmt();

struct Bert {
  bool clean_text = true;            ///< controls and U+FFFD vanish, white space becomes a blank
  bool handle_chinese_chars = true;  ///< blanks around ideographs
  bool strip_accents = true;         ///< form D without nonspacing marks
  bool lowercase = true;
};
/// Adds BERT's steps in BERT's order.
void add_bert(const Bert& options, Normalizer& out);

}  // namespace steps

/// Reads the "normalizer" of a tokenizer.json (null: none). Throws DataError naming what is
/// unknown.
Normalizer read_normalizer(const nlohmann::json& json, std::string_view origin);

}  // namespace mm::text
