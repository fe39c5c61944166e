#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace mm::mmprobe {

/// What the chosen verb does; returns the exit code. Set by the verb's callback, run after parsing.
using Action = std::function<int()>;

// Each adds one verb to `app`; when the user names it, `action` becomes what it does.
void add_node(CLI::App& app, Action& action);
void add_nccl(CLI::App& app, Action& action);
void add_pairs(CLI::App& app, Action& action);
void add_fleet(CLI::App& app, Action& action);
void add_topo(CLI::App& app, Action& action);
void add_watch(CLI::App& app, Action& action);

}  // namespace mm::mmprobe
