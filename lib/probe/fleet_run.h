#pragma once
#include <filesystem>
#include <optional>

#include "lib/health/node_report.h"
#include "lib/probe/fleet.h"
#include "lib/probe/fleet_links.h"

namespace mm::probe {

struct FleetRunOptions {
  health::NodeOptions node;
  bool check_node = true;
  LinkCheckOptions links;
  FleetOptions judge;
  std::filesystem::path
      directory;  ///< all nodes see it; empty: the job's own, removed if all answered
  std::filesystem::path history;  ///< appended to, unless empty
  double timeout_s = 60;          ///< for the last node after the first
  bool has_gloo = false;          ///< the engine with LibTorch is installed
};

/// `fleet` as one task of an allocation runs it: probes this node (first task of a node), waits for
/// the others' results, checks pairs and collectives between the nodes that answered, and judges
/// all of it on rank 0. Nothing on the other ranks.
std::optional<FleetReport> run_fleet(const FleetRunOptions& options);

/// Judges a directory that run_fleet, or nodes one after another, have left. Throws UsageError if
/// no result is there.
FleetReport replay_fleet(const FleetRunOptions& options, const std::filesystem::path& directory);

}  // namespace mm::probe
