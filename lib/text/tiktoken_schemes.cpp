#include "lib/text/tiktoken_schemes.h"

#include <fmt/format.h>

#include <array>

namespace mm::text {
namespace {

// The published patterns; data, to the letter.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::array kSchemes = {
    TiktokenScheme{"gpt2", 50256, kGpt2, false, false, "", "<|endoftext|>"},
    TiktokenScheme{"cl100k", 100256, kCl100k, false, false, "", "<|endoftext|>"},
    TiktokenScheme{"o200k", 199998, kO200k, false, false, "", "<|endoftext|>"},
    TiktokenScheme{"llama3", 128000, kCl100k, false, true, "<|begin_of_text|>", "<|end_of_text|>"},
    TiktokenScheme{"qwen", 151643, kQwen, true, false, "", "<|endoftext|>"}};

using Tokens = std::vector<AddedToken>;

void add(Tokens& tokens, std::string content, int32_t id) {
  tokens.push_back({.content = std::move(content), .id = id, .special = true});
}

Tokens llama3_tokens(int32_t first) {
  constexpr std::array<std::string_view, 12> kNamed = {"<|begin_of_text|>",
                                                       "<|end_of_text|>",
                                                       "<|reserved_special_token_0|>",
                                                       "<|reserved_special_token_1|>",
                                                       "<|finetune_right_pad_id|>",
                                                       "<|step_id|>",
                                                       "<|start_header_id|>",
                                                       "<|end_header_id|>",
                                                       "<|eom_id|>",
                                                       "<|eot_id|>",
                                                       "<|python_tag|>",
                                                       "<|image|>"};
  Tokens tokens;
  for (const std::string_view name : kNamed) add(tokens, std::string(name), first++);
  for (int i = 2; i < 246; ++i)
    add(tokens, fmt::format("<|reserved_special_token_{}|>", i), first++);
  return tokens;
}

Tokens qwen_tokens(int32_t first) {
  Tokens tokens;
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"})
    add(tokens, name, first++);
  for (int i = 0; i < 205; ++i) add(tokens, fmt::format("<|extra_{}|>", i), first++);
  return tokens;
}

}  // namespace

std::span<const TiktokenScheme> all_tiktoken_schemes() { return kSchemes; }

std::vector<AddedToken> special_tokens(const TiktokenScheme& scheme, int32_t ranks) {
  if (scheme.name == "llama3") return llama3_tokens(ranks);
  if (scheme.name == "qwen") return qwen_tokens(ranks);
  Tokens tokens;
  if (scheme.name == "cl100k") {
    add(tokens, "<|endoftext|>", ranks + 1);
    add(tokens, "<|fim_prefix|>", ranks + 2);
    add(tokens, "<|fim_middle|>", ranks + 3);
    add(tokens, "<|fim_suffix|>", ranks + 4);
    add(tokens, "<|endofprompt|>", ranks + 20);
  } else if (scheme.name == "o200k") {
    add(tokens, "<|endoftext|>", ranks + 1);
    add(tokens, "<|endofprompt|>", ranks + 20);
  } else {
    add(tokens, "<|endoftext|>", ranks);
  }
  return tokens;
}

}  // namespace mm::text
