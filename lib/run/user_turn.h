#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "lib/text/chat_template.h"
#include "lib/text/tokenizer.h"

namespace mm::run {

/// What the user says in one round of a rendered conversation, without system text, roles and marks
/// and without white space at its ends. `ids`: the tokens between the answer before and this one,
/// placeholders of pictures left out. Where the template's words are not found, all of the text.
std::string user_turn(std::span<const int32_t> ids, const text::ChatTemplate& chat,
                      const text::Tokenizer& tokenizer);

}  // namespace mm::run
