#pragma once
#include <string>
#include <string_view>

namespace mm::text {

/// An expression in Oniguruma's dialect (as tokenizer.json means it, with Unicode on) in PCRE2's
/// words. \s, \w, \d become explicit Unicode classes, since PCRE2's differ by a few characters; ^
/// and $ match at lines. Refused by name with DataError: what the two would understand differently
/// (\h, \R, \X, \K, \G, \b in a class, class intersections and nested classes, (?m) and (?s)).
std::string to_pcre2(std::string_view expression, std::string_view origin);

}  // namespace mm::text
