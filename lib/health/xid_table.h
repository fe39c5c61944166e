#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/health/finding.h"

namespace mm::health {

/// What one Xid means; a row of data/xid.toml.
struct XidRow {
  std::string what;
  std::string nvidia;  ///< NVIDIA's immediate action
  Level level = Level::kWarn;
  std::string fatal_word;  ///< a line that holds it is bad; empty: none
  std::string code;
  std::string action;
};

using XidTable = std::map<int, XidRow>;

/// The table that is built in, or that of a file. Throws UsageError with file, line and key.
XidTable load_xid_table(const std::filesystem::path& file = {});

/// An Xid as the driver writes it: "NVRM: Xid (PCI:0000:5b:00): 79, pid=1, ...".
struct XidLine {
  std::string bus_id;  ///< "0000:5b:00"
  int xid = 0;
  std::string detail;  ///< the rest of the line
};
std::optional<XidLine> parse_xid(std::string_view kernel_text);

/// Numbers and ranges, "8, 39-41"; throws DataError for anything else.
std::vector<int> parse_id_ranges(std::string_view text);

/// The judgement on one Xid line. An Xid that the table does not know is a warning.
Finding judge_xid(const XidLine& line, const XidTable& table);

}  // namespace mm::health
