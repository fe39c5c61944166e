#pragma once
#include <string>
#include <string_view>
#include <vector>

// Slurm's two compressed texts, without scontrol.
namespace mm::slurm {

/// "n[001-003,007],gpu-a[1-2]" -> n001 n002 n003 n007 gpu-a1 gpu-a2, in the order of the text.
/// Several brackets in a name give their product, the last one fastest. Leading zeros of a range's
/// start are a width. Throws UsageError with the text and the place for anything broken (unclosed,
/// empty, not digits, descending) and above a million hosts.
std::vector<std::string> expand_hostlist(std::string_view text);

/// SLURM_TASKS_PER_NODE, "2(x3),1" -> 2 2 2 1. Throws UsageError with the text and the place.
std::vector<int> expand_tasks_per_node(std::string_view text);

}  // namespace mm::slurm
