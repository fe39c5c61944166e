#pragma once
#include <string>
#include <vector>

#include "lib/base/json.h"

namespace mm::run {

/// What became of every argument of a run that was imported.
struct ImportReport {
  struct Mapped {
    std::string flag, value;
    std::string key, setting;  ///< recipe key (or tool and option) and what it was set to
  };
  struct Unmapped {
    std::string flag, value;
    std::string reason;
    bool needless = false;  ///< it has no meaning here; else the recipe differs from the run
  };
  struct Missing {
    std::string key;  ///< required, and left out of the recipe
    std::string reason;
  };
  std::vector<Mapped> mapped;
  std::vector<Unmapped> unmapped;
  std::vector<Missing> missing;
  std::vector<std::string> notes;     ///< what holds for the recipe as a whole
  std::vector<std::string> commands;  ///< that pack the data and train, one each

  /// Lines for a reader: missing keys, notes, what is not mapped, what has no meaning here.
  std::vector<std::string> lines() const;
  /// {schema, mapped [{flag, value, key, setting}], unmapped [{flag, value, kind, reason}], ...}.
  Json to_json() const;
};

}  // namespace mm::run
