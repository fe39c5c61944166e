#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "lib/health/node_report.h"

namespace mm::mmprobe {

/// The options that say what of a node to read and how to judge it, as the verbs share them.
struct NodeFlags {
  health::NodeOptions node;
  std::string kind, kmsg;
  std::optional<double> min_free_gib;
};

void add_node_flags(CLI::App* verb, NodeFlags& flags);
/// With the environment's libraries and the kind of node resolved. Throws UsageError.
health::NodeOptions resolve(const NodeFlags& flags);

}  // namespace mm::mmprobe
