#include "lib/data/contact_sheet.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/html.h"
#include "lib/image/encode.h"

namespace mm::data {
namespace {

constexpr std::string_view kStyle = R"(<style>
body{font:14px/1.5 system-ui,sans-serif;margin:2rem;background:#fafafa;color:#222}
article{display:flex;gap:1rem;background:#fff;border:1px solid #ddd;border-radius:6px;padding:1rem;margin:1rem 0}
img{width:160px;image-rendering:pixelated;border:1px solid #ddd;align-self:flex-start}
h2{font-size:1rem;margin:0 0 .3rem}p{margin:.3rem 0}small{color:#777}
.t span{display:inline-block;padding:0 .25em;margin:1px;border-radius:3px;background:#eee;font-family:monospace;white-space:pre}
.t .y{background:#ffd54a}.t .i{background:#cfe3ff}.bad{color:#b00020}
</style>
)";

/// Tiles of a picture stand below each other.
std::string picture_tags(const Sample& sample, const PictureLayout& layout) {
  std::string html;
  auto from = sample.pixels.begin();
  for (size_t i = 0; i < sample.text.image_begin.size(); ++i) {
    PictureGrid grid{.width = layout.width, .height = layout.height};
    if (layout.varied) grid = sample.grids[i];
    image::Image picture(grid.width, grid.height * grid.tiles);
    std::copy_n(from, picture.rgb.size(), picture.rgb.begin());
    from += static_cast<ptrdiff_t>(picture.rgb.size());
    const std::string png = image::encode_png(picture);
    html += fmt::format("<img alt=\"picture {}\" src=\"data:image/png;base64,{}\">\n", i,
                        base64(image::as_bytes(png)));
  }
  return html;
}

std::string token_tags(const Sample& sample, const PictureLayout& layout,
                       const text::Tokenizer& tokenizer) {
  const SampleText& text = sample.text;
  const std::vector<int32_t> labels = labels_of(text);
  std::string html = "<p class=\"t\">";
  size_t picture = 0;
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    // In a bucketed set no token stands for a picture.
    if (!layout.bucketed && picture < text.image_begin.size() && i == text.image_begin[picture]) {
      const int32_t count = layout.varied ? sample.grids[picture].tokens : layout.patches;
      html += fmt::format("<span class=\"i\">picture &times; {}</span>", count);
      i += static_cast<size_t>(count) - 1;
      ++picture;
      continue;
    }
    html +=
        fmt::format("<span{} title=\"{}\">{}</span>", labels[i] == kIgnore ? "" : " class=\"y\"",
                    text.tokens[i], html_escape(tokenizer.id_to_piece(text.tokens[i])));
  }
  return html + "</p>\n";
}

std::string article(const Dataset& set, const text::Tokenizer& tokenizer, uint64_t row) {
  const std::string title =
      fmt::format("<h2>{} <small>sample {}</small></h2>\n", html_escape(set.key(row)), row);
  const auto sample = set.read(row);
  if (!sample) {
    return fmt::format("<article><div>{}<p class=\"bad\">{}</p></div></article>\n", title,
                       html_escape(sample.failure().message));
  }
  const SampleSize size = size_of(sample->text, sample->grids);
  return fmt::format(
      "<article>\n{}<div>{}<p>{}</p>\n{}<small>{} tokens, {} trained on, {} "
      "pictures</small></div>\n</article>\n",
      picture_tags(*sample, set.pictures()), title,
      html_escape(tokenizer.decode(sample->text.tokens)),
      token_tags(*sample, set.pictures(), tokenizer), size.tokens, size.targets, size.images);
}

}  // namespace

std::string contact_sheet(const Dataset& set, const text::Tokenizer& tokenizer,
                          std::span<const uint64_t> rows) {
  const std::string name = html_escape(set.directory().string());
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><meta "
      "charset=\"utf-8\"><title>{0}</title>\n{1}<h1>{0}</h1>\n<p>{2} of {3} samples. "
      "Tokens: <span class=\"t\"><span class=\"y\">trained on</span> <span>context</span> <span "
      "class=\"i\">picture</span>"
      "</span></p>\n",
      name, kStyle, rows.size(), set.rows());
  for (const uint64_t row : rows) html += article(set, tokenizer, row);
  return html + "</html>\n";
}

std::vector<uint64_t> spread_rows(uint64_t rows, uint64_t count) {
  std::vector<uint64_t> picked;
  count = std::min(rows, count);
  for (uint64_t i = 0; i < count; ++i)
    picked.push_back(count == 1 ? 0 : i * (rows - 1) / (count - 1));
  return picked;
}

}  // namespace mm::data
