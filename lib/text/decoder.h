#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mm::text {

/// Pieces to text: a list of steps, each over all pieces. Immutable after loading, thread-safe.
class Decoder {
 public:
  using Pieces = std::vector<std::string>;
  using Step = std::function<void(Pieces& pieces)>;

  void add(Step step) { steps_.push_back(std::move(step)); }
  void set_joined_with_blanks() { blanks_ = true; }
  /// The only step is that of byte-level vocabularies: pieces are bytes, one after another.
  bool bytes_only() const { return bytes_only_; }
  void set_bytes_only() { bytes_only_ = true; }

  /// `pieces` as spelled in the vocabulary. The result is valid UTF-8.
  std::string decode(Pieces pieces) const;

 private:
  std::vector<Step> steps_;
  bool blanks_ = false, bytes_only_ = false;
};

/// Reads the "decoder" of a tokenizer.json (null: pieces are joined with blanks). Throws DataError
/// naming what is unknown.
Decoder read_decoder(const nlohmann::json& json, std::string_view origin);

/// Byte-level pieces whose words end with `suffix`, which becomes a blank (but for the last).
Decoder word_end_decoder(std::string_view suffix);

}  // namespace mm::text
