#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mm::text {

/// The mark that stands for one picture in conversations and templates.
inline constexpr std::string_view kImageMark = "<image>";

/// Ids of a text and where each begins: `begin_byte[i]` is the offset in the text (as given, before
/// any normalisation) of the first byte that token i stands for. Non-decreasing.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<uint32_t> begin_byte;
};

/// A special token: its text, and its id. In text meant to be parsed it becomes this one id.
struct Mark {
  std::string text;
  int32_t id = -1;
};

/// Text to ids and back. Immutable after loading; all methods are thread-safe. No method adds bos
/// or eos by itself.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Plain text: marks inside it have no meaning and are spelled in ordinary pieces, so text of
  /// strangers cannot forge one. `at_start` says that the text begins the sequence; it matters only
  /// to tokenizers that put a blank there. Throws DataError for a byte that has no piece (only with
  /// incomplete vocabularies).
  virtual Encoding encode_text(std::string_view text, bool at_start = true) const = 0;
  std::vector<int32_t> encode(std::string_view text) const { return encode_text(text).ids; }
  /// Marks become their ids; each text between two marks is encoded on its own (`at_start` for the
  /// first only).
  virtual Encoding encode_marked(std::string_view text) const;
  /// encode_marked between the ids that the file puts around a whole text (bos, eos, ...): what a
  /// text encoder or a plain language model is fed. `most` > 0: the text's own ids are cut at their
  /// end so that there are no more in all (never fewer than those around it).
  std::vector<int32_t> encode_whole(std::string_view text, size_t most = 0) const;

  /// Text of the ids. Marks and control tokens give nothing, or their text if `keep_marks`. Ids out
  /// of range give nothing; the result is valid UTF-8 (broken sequences become U+FFFD).
  virtual std::string decode(std::span<const int32_t> ids, bool keep_marks = false) const = 0;

  /// One more than the largest id, marks included: the rows an embedding needs.
  virtual int32_t vocab_size() const = 0;
  /// -1 where the tokenizer has none.
  virtual int32_t bos_id() const = 0;
  virtual int32_t eos_id() const = 0;
  virtual int32_t unk_id() const = 0;
  virtual int32_t pad_id() const = 0;
  /// The file asks for a begin token in front of every sequence (a post-processor does). `render`
  /// sees to exactly one.
  bool adds_bos() const { return !before_.empty(); }
  /// Exact pieces, marks included; nothing if unknown.
  virtual std::optional<int32_t> piece_to_id(std::string_view piece) const = 0;
  /// Empty for ids out of range.
  virtual std::string id_to_piece(int32_t id) const = 0;
  /// Longest first, so that the first match is the right one.
  const std::vector<Mark>& marks() const { return marks_; }
  /// Id of kImageMark; -1 if it was not loaded with one.
  int32_t image_id() const { return image_id_; }

 protected:
  /// Sorts the marks and finds the image mark; implementations call it once while loading.
  void set_marks(std::vector<Mark> marks);
  /// Ids around a whole text.
  void set_wrapping(std::vector<int32_t> before, std::vector<int32_t> after);

 private:
  std::vector<Mark> marks_;
  std::vector<int32_t> before_, after_;
  int32_t image_id_ = -1;
};

/// Where SentencePiece's dummy blank goes: before every text between two marks (as LLaVA's and
/// "legacy" Llama tokenizers do), or only before the first.
enum class DummyPrefix { kEverywhere, kFirstOnly };

struct TokenizerOptions {
  /// Marks to have besides those of the file: one that is a piece of the vocabulary keeps its id,
  /// others get the next ids.
  std::vector<std::string> extra_marks{std::string(kImageMark)};
  DummyPrefix dummy_prefix = DummyPrefix::kEverywhere;
  /// tiktoken: pattern and special tokens (tiktoken_schemes()); empty: by the file's name
  /// ("any.SCHEME.tiktoken"), else by the number of its ranks.
  std::string scheme;
};

enum class TokenizerKind { kSentencePiece, kTokenizerJson, kTiktoken, kClip, kLabels };
/// By content: a JSON object, a JSON array (class names, label_names.h), lines of base 64 and
/// numbers, gzip data or CLIP's first line; anything else is taken for a SentencePiece model.
TokenizerKind sniff_tokenizer(std::string_view content);
/// "sentencepiece", "tokenizer.json", "tiktoken", "clip" or "labels".
std::string_view tokenizer_kind_name(TokenizerKind kind);
/// What a copy of a tokenizer file is called, so that load_tokenizer needs no options to read it
/// alike: "tokenizer.model", "tokenizer.json", "tokenizer.llama3.tiktoken",
/// "tokenizer.clip.txt.gz", "classes.json". `scheme`: options.scheme, or that of the name of the
/// file.
std::string tokenizer_copy_name(TokenizerKind kind, std::string_view scheme);
/// SCHEME of a name "any.SCHEME.tiktoken"; empty for others.
std::string scheme_of_name(const std::filesystem::path& path);

/// The tokenizer of a model's directory: its tokenizer.json, SentencePiece model by the usual
/// names, or vocab.json with merges.txt beside it. Nothing if it has none.
std::optional<std::filesystem::path> find_tokenizer(const std::filesystem::path& directory);
/// What parse_tokenizer takes: the content of the file; of a vocab.json with merges.txt beside it
/// the tokenizer.json that they stand for (vocab_merges.h); of a directory that of find_tokenizer.
/// Throws IoError, DataError.
std::string read_tokenizer(const std::filesystem::path& path);

/// Loads a SentencePiece model, a tokenizer.json, a tiktoken file, CLIP's list of merges or class
/// names, or what read_tokenizer makes of `path`. Executes nothing; sizes and ids are checked
/// before they are believed. Throws DataError naming `origin` and what is wrong or not supported,
/// IoError if the file cannot be read.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path,
                                          const TokenizerOptions& options = {});
std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view content, std::string_view origin,
                                           const TokenizerOptions& options = {});

}  // namespace mm::text
