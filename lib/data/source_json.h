#pragma once
#include "lib/base/json.h"
#include "lib/data/source.h"

namespace mm::data {

/// A source as the manifest records it: what decides its rows; files by name and size. Throws
/// IoError.
Json source_json(const SourceOptions& source);

}  // namespace mm::data
