#pragma once
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/data/source.h"

namespace mm::data {

/// A source as the manifest records it: what decides its rows; files by name and size. Throws
/// IoError.
Json source_json(const SourceOptions& source);

/// Short names of the sources that IndexRow::source counts, from what source_json recorded: files
/// without their endings, a number behind those that would be alike. At least one.
std::vector<std::string> source_names(const Json& recorded);

}  // namespace mm::data
