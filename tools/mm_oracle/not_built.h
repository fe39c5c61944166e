#pragma once
#include <string>

namespace mm::oracle {

/// Whether a quantity of a kind of folder is known to come with later work: printed and counted, no
/// failure. The table in not_built.cpp is the only place that says so; whoever builds a quantity
/// takes its line out.
bool is_not_built(const std::string& kind, const std::string& quantity);

/// '*' stands for any run of characters, also '/' and none.
bool matches(const std::string& pattern, const std::string& text);

}  // namespace mm::oracle
