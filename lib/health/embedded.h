#pragma once
#include <string_view>
#include <utility>
#include <vector>

namespace mm::health {

// Files of this directory that are built into the program, so that one binary is enough.

/// data/xid.toml.
std::string_view embedded_xid_table();
/// Name ("h100-8") and text of every file in sku/.
std::vector<std::pair<std::string_view, std::string_view>> embedded_skus();

}  // namespace mm::health
