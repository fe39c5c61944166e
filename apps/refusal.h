#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace mm {

/// One line, "TOOL: error: ...", on what is wrong with the command line: a verb or option that does
/// not exist is named, with the one that was likely meant; else what CLI11 says; and where to look.
std::string refusal(const CLI::App& app, const CLI::ParseError& error, int argc,
                    const char* const* argv);

}  // namespace mm
