#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace mmshard {

/// What the chosen verb does after parsing; returns the exit code.
using Body = std::function<int()>;

// Each declares its options on `app`; when its verb is chosen, `body` becomes what to run.
void add_pack(CLI::App& app, Body& body);
void add_plan(CLI::App& app, Body& body);
void add_info(CLI::App& app, Body& body);
void add_show(CLI::App& app, Body& body);
void add_verify(CLI::App& app, Body& body);
void add_encode(CLI::App& app, Body& body);
void add_export(CLI::App& app, Body& body);

}  // namespace mmshard
