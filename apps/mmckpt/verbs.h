#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace mm::mmckpt {

/// What the chosen verb does; returns the exit code. Set by the verb's callback, run after parsing.
using Action = std::function<int()>;

// Each adds one verb to `app`; when the user names it, `action` becomes what it does.
void add_convert(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_join(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);

}  // namespace mm::mmckpt
