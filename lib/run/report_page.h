#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mm::run {

/// One self-contained HTML page: `body` below a heading of `title`, styled for light and dark, no
/// network.
std::string report_page(std::string_view title, std::string_view body);

/// A row of cells, the first a heading; `cells` are HTML.
std::string table_row(std::string_view head, const std::vector<std::string>& cells);

}  // namespace mm::run
