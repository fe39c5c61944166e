#pragma once
#include <string_view>

namespace mm::detail {

struct ConfigState;

/// ConfigDocument::apply_override.
void apply_override(ConfigState& state, std::string_view assignment);

}  // namespace mm::detail
