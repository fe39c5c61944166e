#pragma once
#include <memory>
#include <string>

#include "lib/dist/group.h"

namespace mm::dist {

/// A group of one rank: every reduction is the identity, every gather a copy. Never fails, never
/// blocks.
std::unique_ptr<Group> make_single_group(std::string name = "data");

}  // namespace mm::dist
