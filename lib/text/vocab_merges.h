#pragma once
#include <filesystem>
#include <string>

namespace mm::text {

/// Whether the directory has a tokenizer in the layout of before tokenizer.json: a vocab.json and a
/// merges.txt.
bool has_vocab_and_merges(const std::filesystem::path& directory);

/// The tokenizer.json that such a directory stands for, CLIP's or GPT-2's: equal files, equal text.
/// tokenizer_config.json's tokenizer_class says which (without one: CLIP's where pieces end with
/// "</w>"). Special and added tokens come from tokenizer_config.json, special_tokens_map.json and
/// added_tokens.json where these are there, else they are the class's usual ones; those that
/// vocab.json lacks get the next ids. CLIP's text is brought to form C, white space becomes one
/// blank, letters lower case; encode_whole stands between bos and eos. Throws DataError naming the
/// file, IoError.
std::string compose_tokenizer_json(const std::filesystem::path& directory);

}  // namespace mm::text
