#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/render.h"
#include "lib/text/tokenizer.h"

namespace mm::text {

/// A rendered conversation before it is tokenised: runs of text and single ids, each trained on or
/// not. Neighbouring texts form one run that is encoded in one go, so the ids are those of the
/// whole text as the model meets it at use.
class Segments {
 public:
  /// Pictures stand as `chat` has them.
  Segments(const Tokenizer& tokenizer, const ChatTemplate& chat)
      : tokenizer_(tokenizer), chat_(chat), picture_id_(picture_id(chat, tokenizer)) {}

  /// The template's begin; makes sure of exactly one bos where the template or the tokenizer asks
  /// for it.
  void begin(std::string_view text);
  /// Text of a template: {bos}, {eos} and the tokenizer's marks become ids. Throws UsageError for a
  /// "<|mark|>" it does not know.
  void add_template(std::string_view text, bool trained);
  /// Text of a stranger: nothing in it is parsed.
  void add_text(std::string_view text, bool trained);
  /// As add_text, not trained on, but kImageMark becomes the picture of the template.
  void add_user_text(std::string_view text);

  /// Ids and labels; the image id of picture i is repeated `picture_tokens[i]` times,
  /// `image_tokens` times past its end.
  RenderedSample tokenise(int32_t image_tokens, std::span<const int32_t> picture_tokens = {}) const;

 private:
  struct Part {
    std::string text;
    int32_t id = -1;  ///< a single id if >= 0, else text
    bool trained = false;
  };
  void add_id(int32_t id, bool trained);
  void encode_run(size_t first, size_t end, bool at_start, RenderedSample& out) const;

  const Tokenizer& tokenizer_;
  const ChatTemplate& chat_;
  int32_t picture_id_;
  std::vector<Part> parts_;
};

}  // namespace mm::text
