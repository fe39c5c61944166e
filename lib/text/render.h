#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/text/chat_template.h"
#include "lib/text/tokenizer.h"

namespace mm::text {

/// Label of a position that is not trained on.
inline constexpr int32_t kIgnore = -100;

enum class Role { kSystem, kUser, kAssistant };
/// "human" "user"; "gpt" "assistant"; "system".
std::optional<Role> role_from_name(std::string_view name);

struct Turn {
  Role role = Role::kUser;
  std::string text;  ///< UTF-8; kImageMark in user turns stands for a picture
};

struct Conversation {
  std::vector<Turn> turns;
  int32_t images = 0;  ///< pictures that the record brings
  /// Text and pictures in order, without roles: user turns hold marks alone, assistant turns text.
  /// Rendered as bos, turns, eos whatever the template; all text and the eos are trained on.
  bool document = false;
};

/// A caption of `images` pictures (0 for plain text) as a conversation of one pair.
Conversation caption_conversation(std::string caption, int32_t images);

/// Where a picture's tokens stand: ids[begin .. begin + count) are the image id.
struct ImageSpan {
  int32_t begin = 0;
  int32_t count = 0;
  bool operator==(const ImageSpan&) const = default;
};

/// A sample as it is stored: `labels` are not shifted; labels[i] is ids[i] where position i is
/// trained on, else kIgnore.
struct RenderedSample {
  std::vector<int32_t> ids;
  std::vector<int32_t> labels;
  std::vector<ImageSpan> images;
  int32_t targets = 0;     ///< positions that are trained on
  int32_t cut_tokens = 0;  ///< dropped from the end by max_length
};

struct RenderOptions {
  int32_t image_tokens = 0;                  ///< per picture; see image_token_count
  std::vector<int32_t> picture_tokens = {};  ///< of picture i, where pictures differ; else empty
  int32_t max_length = 0;                    ///< tokens, those of pictures included; 0 = no limit
  std::string system;                        ///< in place of the template's, if not empty
  bool no_system = false;                    ///< leave the system text out
  /// For generation: the last turn is the user's, and the sample ends where the answer's trained
  /// part would begin. No labels.
  bool prompt_only = false;
};

/// Id that stands for a picture: that of the template's own mark, else of kImageMark; -1: the
/// tokenizer has none. Throws UsageError for a mark of the template that the tokenizer does not
/// know.
int32_t picture_id(const ChatTemplate& chat, const Tokenizer& tokenizer);

/// Tokens of one picture: floor(side / patch)^2, plus one for a class token that exists and is
/// kept.
int32_t image_token_count(int32_t side, int32_t patch, bool has_class_token, bool keep_class_token);

/// Conversation to ids and labels. The text between two marks is encoded in one go; a token is
/// trained on if it begins inside a trained part, so a mask can never be off by one. Exactly one
/// bos if the template or the tokenizer asks for it. Turns before the first user turn (but for a
/// system turn) are dropped. A cut to `max_length` keeps pictures whole. Failure kinds:
/// "bad_turns", "bad_utf8", "image_count" (both numbers in the message), "too_long" (a picture does
/// not fit), "no_targets". Throws UsageError if the template's marks or kImageMark are unknown to
/// the tokenizer. Thread-safe.
Result<RenderedSample> render(const Conversation& conversation, const ChatTemplate& chat,
                              const Tokenizer& tokenizer, const RenderOptions& options);

}  // namespace mm::text
