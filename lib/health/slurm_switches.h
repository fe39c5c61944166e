#pragma once
#include <string>
#include <vector>

#include "lib/health/topology.h"

namespace mm::health {

/// A switch, block or ring as a file of Slurm's names it.
struct SlurmSwitch {
  std::string name;
  std::vector<std::string> below;  ///< switches
  std::vector<std::string> nodes;
};

/// Those with nodes, with what is over them; a cycle ends at its first repetition.
std::vector<LeafSwitch> leaves_of(const std::vector<SlurmSwitch>& switches);

/// A host list; throws DataError naming file and line.
std::vector<std::string> expand_at(const std::string& list, const std::string& origin, int line);

}  // namespace mm::health
