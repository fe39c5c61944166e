#include "lib/run/report_page.h"

#include <fmt/format.h>

#include "lib/base/html.h"

namespace mm::run {
namespace {

constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--fg:#1f2328;--bg:#fff;--line:#d1d9e0;--soft:#f6f8fa;--ok:#1a7f37;--bad:#d1242f}
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--line:#30363d;--soft:#161b22;--ok:#3fb950;--bad:#f85149}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:1000px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid var(--line)}
table{border-collapse:collapse}td,th{padding:.25rem .8rem;border-bottom:1px solid var(--line);text-align:right}
td:first-child,th:first-child{text-align:left}
svg{max-width:100%;height:auto;background:var(--soft);border-radius:6px;margin:.4rem 0;display:block}
svg .grid{stroke:var(--line);stroke-width:.5}svg .tick{font-size:11px;fill:var(--fg)}svg .title{font-size:12px;font-weight:600;fill:var(--fg)}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:.6rem}
.card{border:1px solid var(--line);border-radius:6px;padding:.5rem;font-size:.8rem;background:var(--soft);overflow-wrap:anywhere}
.card img{display:block;width:72px;height:72px;margin:0 auto .3rem;image-rendering:auto;background:#fff;border-radius:4px}
.right{border-left:4px solid var(--ok)}.wrong{border-left:4px solid var(--bad)}
pre{background:var(--soft);padding:.8rem;border-radius:6px;overflow:auto;font-size:.8rem}
)css";

}  // namespace

std::string report_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width'><title>{0}</title>"
      "<style>{1}</style><h1>{0}</h1>{2}</html>\n",
      html_escape(title), kStyle, body);
}

std::string table_row(std::string_view head, const std::vector<std::string>& cells) {
  return fmt::format("<tr><th>{}</th><td>{}</td></tr>", html_escape(head),
                     fmt::join(cells, "</td><td>"));
}

}  // namespace mm::run
