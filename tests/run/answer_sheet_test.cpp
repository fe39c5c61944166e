#include "lib/run/answer_sheet.h"

#include <doctest/doctest.h>

using namespace mm::run;

namespace {

EvalPicture named(const std::string& truth, const std::string& guess) {
  return {"k", {truth, guess, 0}, "data:image/png;base64,AA=="};
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE(
    "draw_answer_sheet: right and wrong names, hostile text escaped, no more than asked for") {
  const EvalResult evaluation{
      .rows = {{"trained", {3, 0.5, 0.75, 1, 1, 1}}},
      .pictures = {named("cat", "cat"), named("dog", "<b>"), named("fox", "fox")}};
  const std::string svg = draw_answer_sheet(evaluation, 2);
  CHECK(count_of(svg, "<image ") == 2);
  CHECK(count_of(svg, "class='right'>cat") == 1);
  CHECK(count_of(svg, "class='wrong'>&lt;b&gt;") == 1);
  CHECK(svg.find("exact match 50.0 %") != std::string::npos);
}

TEST_CASE("draw_answer_sheet: a long name takes two lines and ends in an ellipsis") {
  const std::string name = "woman in motorized wheelchair facing right: medium-light skin tone";
  const std::string svg = draw_answer_sheet({.pictures = {named(name, "")}}, 9);
  CHECK(count_of(svg, "class='truth'") == 2);
  CHECK(svg.find("\u2026</text>") != std::string::npos);
}

TEST_CASE("draw_answer_sheet: nothing evaluated gives an empty sheet") {
  CHECK(count_of(draw_answer_sheet({}, 6), "<image ") == 0);
}
