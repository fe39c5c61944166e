#include "lib/run/stop_tokens.h"

#include <algorithm>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/text/chat_template.h"

namespace mm::run {
namespace {

void add(int64_t id, std::vector<int64_t>& stops) {
  if (id >= 0 && std::ranges::find(stops, id) == stops.end()) stops.push_back(id);
}

/// -1: the tokenizer folds line ends into blanks, or has no token for them.
int32_t line_end(const text::Tokenizer& tokenizer) {
  try {
    const std::vector<int32_t> ids = tokenizer.encode_text("\n", /*at_start=*/false).ids;
    if (!ids.empty() && tokenizer.decode({&ids.back(), 1}) == "\n") return ids.back();
  } catch (const DataError&) {
    // an incomplete vocabulary
  }
  return -1;
}

int32_t closing_token(std::string_view close, const text::Tokenizer& tokenizer) {
  if (close.starts_with("{eos}")) return tokenizer.eos_id();
  for (const text::Mark& mark : tokenizer.marks()) {
    if (close.starts_with(mark.text)) return mark.id;
  }
  return close == "\n" ? line_end(tokenizer) : -1;
}

}  // namespace

std::vector<int64_t> stop_tokens_of(const model::TextConfig& config,
                                    const std::filesystem::path& generation_config) {
  std::vector<int64_t> stops;
  add(config.eos_token, stops);
  for (const int64_t id : config.more_eos_tokens) add(id, stops);
  if (!std::filesystem::is_regular_file(generation_config)) return stops;
  const Json json = read_json_file(generation_config);
  const auto wrong = [&](const char* expected) {
    throw DataError("{}: expected {}", generation_config.string(), expected);
  };
  if (!json.is_object()) wrong("an object of settings");
  if (!json.contains("eos_token_id")) return stops;
  const Json& stated = json.at("eos_token_id");
  for (const Json& id : stated.is_array() ? stated : Json::array({stated})) {
    if (id.is_null()) continue;
    if (!id.is_number_integer()) wrong("\"eos_token_id\", a whole number or a list of them");
    add(id.get<int64_t>(), stops);
  }
  return stops;
}

void add_template_stop(const std::string& chat_template, const text::Tokenizer& tokenizer,
                       std::vector<int64_t>& stops) {
  if (const auto chat = text::find_template(chat_template))
    add(closing_token(chat->answer_close, tokenizer), stops);
}

}  // namespace mm::run
