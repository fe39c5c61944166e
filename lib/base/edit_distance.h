#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mm {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
/// string alignment), counted in bytes. O(|a| |b|).
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that a typist most likely meant by `word`: least distance, at most a third of the
/// longer length (at least 1) apart; the first one of equals. Nothing if none is near.
std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string> candidates);

/// `; did you mean "x"?` or, if nothing is near, `; known: a, b` (at most 12 words), or "" without
/// candidates.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace mm
