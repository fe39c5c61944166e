#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace mm::mmtrain {

/// What the chosen verb does; returns the exit code. Set by the verb's callback, run after parsing.
using Action = std::function<int()>;

// Each adds one verb to `app`; when the user names it, `action` becomes what it does.
void add_run(CLI::App& app, Action& action);
void add_launch(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_caption(CLI::App& app, Action& action);
void add_sample(CLI::App& app, Action& action);
void add_import_recipe(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);

}  // namespace mm::mmtrain
