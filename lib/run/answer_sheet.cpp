#include "lib/run/answer_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/base/html.h"

namespace mm::run {
namespace {

constexpr size_t kColumns = 6, kLineChars = 22, kNameLines = 2;
constexpr size_t kCellWidth = 160, kCellHeight = 156, kSide = 72, kLineHeight = 14;

/// `text` broken at blanks into at most kNameLines lines; what does not fit ends in an ellipsis.
std::vector<std::string> wrap(const std::string& text) {
  std::vector<std::string> lines(1);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (line.size() + 1 + word.size() <= kLineChars) {
      line += ' ' + word;
    } else if (lines.size() < kNameLines) {
      lines.push_back(word);
    } else {
      line += " \u2026";
      break;
    }
  }
  return lines;
}

std::string name_text(const std::string& name, size_t x, size_t y, const char* style) {
  std::string out;
  for (const std::string& line : wrap(name)) {
    out += fmt::format("<text x='{}' y='{}' class='{}'>{}</text>", x, y, style, html_escape(line));
    y += kLineHeight;
  }
  return out;
}

std::string cell(const EvalPicture& picture, size_t x, size_t y) {
  const NamedPicture& o = picture.outcome;
  const size_t middle = x + kCellWidth / 2, below = y + kSide + 22;
  return fmt::format("<image x='{}' y='{}' width='{}' height='{}' href='{}'/>", middle - kSide / 2,
                     y + 6, kSide, kSide, html_escape(picture.data_uri)) +
         name_text(o.truth, middle, below, "truth") +
         name_text(o.guess, middle, below + kNameLines * kLineHeight + 2,
                   exact_match(o.truth, o.guess) ? "right" : "wrong");
}

std::string score_line(const EvalResult& evaluation, size_t shown) {
  if (evaluation.rows.empty()) return "";
  const NameScore& s = evaluation.rows.front().score;
  return fmt::format(
      "{} of {} held-out pictures, true name above the model's. {}: exact match "
      "{:.1f} %, word F1 {:.1f} %, recall@1 {:.1f} %.",
      shown, evaluation.pictures.size(), evaluation.rows.front().name, 100 * s.exact, 100 * s.f1,
      100 * s.recall_1);
}

}  // namespace

std::string draw_answer_sheet(const EvalResult& evaluation, size_t count) {
  count = std::min(count, evaluation.pictures.size());
  const size_t rows = (count + kColumns - 1) / kColumns;
  const size_t width = kColumns * kCellWidth, height = rows * kCellHeight + 30;
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}'>"
      "<style>text{{font:12px system-ui,sans-serif;text-anchor:middle}}.truth{{fill:#1f2328}}"
      ".right{{fill:#1a7f37}}.wrong{{fill:#d1242f}}.score{{fill:#57606a}}</style>"
      "<rect width='{0}' height='{1}' fill='#fff'/>",
      width, height);
  for (size_t i = 0; i < count; ++i)
    out += cell(evaluation.pictures[i], i % kColumns * kCellWidth, i / kColumns * kCellHeight);
  return out + fmt::format("<text x='{}' y='{}' class='score'>{}</text></svg>\n", width / 2,
                           height - 10, html_escape(score_line(evaluation, count)));
}

}  // namespace mm::run
