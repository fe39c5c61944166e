#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"

namespace mm::health {

enum class Level {
  kOk,
  kWarn,        ///< worth a look; the node may train
  kBad,         ///< the node should not train
  kNotChecked,  ///< nothing can be said; never counted as good
};

/// One judgement. Faults carry a code of the catalogue (docs/operations.md), which stays the same
/// over versions; kOk and kNotChecked have none.
struct Finding {
  Level level = Level::kOk;
  std::string code;                      ///< "F09"
  std::string where;                     ///< "mlx5_3 port 1", "gpu 2 (0000:5d:00.0)"
  std::string what;                      ///< "port is down"
  std::string evidence;                  ///< what was read, beside what was expected
  std::string action;                    ///< what to do
  std::optional<int64_t> since_unix_ms;  ///< nothing: not known
  /// In a fleet the nodes that it is about, two for the link between them; empty: the node that
  /// says it.
  std::vector<std::string> hosts;
};

Finding ok(std::string where, std::string what);
Finding not_checked(std::string where, std::string why);

/// "ok", "warn", "BAD", "not checked".
std::string_view level_word(Level level);

/// One line without line feed: "BAD F09 mlx5_3 port 1: port is down; state "1: DOWN"; since ...;
/// action: ...". Text from outside is escaped.
std::string finding_line(const Finding& finding);
/// {"level", "code", "where", "what", "evidence", "since", "action"}; what is not known is null.
/// "hosts" only where there are any.
Json finding_json(const Finding& finding);
/// The inverse, but for "since"; throws DataError for what is no finding.
Finding finding_from(const Json& json);

/// Worst first, else in the order they were found.
void sort_findings(std::vector<Finding>& findings);
bool any_bad(const std::vector<Finding>& findings);

}  // namespace mm::health
