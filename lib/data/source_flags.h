#pragma once
#include <string>
#include <vector>

#include "lib/data/source.h"

namespace mm::data {

/// Sources as a command line names them.
struct SourceFlags {
  std::vector<std::string> paths;
  std::vector<double> weights, repeats;  ///< none, or one a path
  std::vector<std::string> formats;      ///< none, one for all, or one a path; "auto" sniffs
  std::vector<std::string> image_roots;  ///< none, one for all, or one a path
  SourceOptions common;                  ///< what holds for all of them
};

/// One path without weight and repeat: that source. Else a mixture of them. Throws UsageError for
/// counts that do not match, a path that is not there and a format that is unknown.
SourceOptions source_from_flags(const SourceFlags& flags);

}  // namespace mm::data
