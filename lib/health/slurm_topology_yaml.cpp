#include <algorithm>
#include <map>
#include <sstream>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/text_escape.h"
#include "lib/health/slurm_switches.h"

namespace mm::health {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

struct Entry {
  int line = 0;
  std::string key, value;
};

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string unquoted(const std::string& text) {
  const bool quoted =
      text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Without comments; maps in braces are spread over lines. Brackets of host lists stay whole.
std::vector<std::string> pieces_of(std::string line) {
  if (const size_t comment = line.find(" #"); comment != std::string::npos) line.resize(comment);
  if (trimmed(line).starts_with("#")) return {};
  std::vector<std::string> pieces(1);
  int brackets = 0, braces = 0;
  for (const char c : line) {
    brackets += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == '{' || c == '}' || (c == ',' && braces > 0 && brackets == 0)) {
      braces += c == '{' ? 1 : c == '}' ? -1 : 0;
      pieces.emplace_back();
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

// What Slurm's file consists of: "key: value", as items of lists or not. Structure follows from the
// keys, so that indentation need not be understood.
std::vector<Entry> entries_of(const std::string& text, const std::string& origin) {
  std::vector<Entry> entries;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    for (std::string piece : pieces_of(line)) {
      piece = trimmed(piece);
      while (piece.starts_with("- ")) piece = trimmed(piece.substr(2));
      if (piece.empty() || piece == "-" || piece == "---" || piece == "...") continue;
      const size_t colon = piece.find(':');
      // A bare number in a list: sizes of blocks.
      if (colon == std::string::npos && piece.find_first_not_of("0123456789") == std::string::npos)
        continue;
      if (colon == std::string::npos)
        throw DataError("{}:{}: \"{}\": expected key: value", origin, number,
                        escape_text(piece, 80));
      entries.push_back(
          {number, trimmed(piece.substr(0, colon)), unquoted(trimmed(piece.substr(colon + 1)))});
    }
  }
  return entries;
}

struct NamedTopology {
  bool is_default = false;
  std::vector<SlurmSwitch> switches;
};

std::vector<NamedTopology> topologies_of(const std::vector<Entry>& entries,
                                         const std::string& origin) {
  std::vector<NamedTopology> all;
  for (const Entry& entry : entries) {
    if (entry.key == "topology") all.emplace_back();
    if (all.empty())
      throw DataError("{}:{}: {} before the first topology", origin, entry.line,
                      escape_text(entry.key, 80));
    auto& switches = all.back().switches;
    const bool names = (entry.key == "switch" || entry.key == "block" || entry.key == "ring") &&
                       !entry.value.empty();
    if (entry.key == "cluster_default") all.back().is_default = entry.value == "true";
    if (names) switches.push_back({.name = entry.value});
    if (entry.key != "children" && entry.key != "nodes") continue;
    if (switches.empty())
      throw DataError("{}:{}: {} without a switch, block or ring", origin, entry.line, entry.key);
    auto& list = entry.key == "nodes" ? switches.back().nodes : switches.back().below;
    list = expand_at(entry.value, origin, entry.line);
  }
  return all;
}

}  // namespace

std::vector<LeafSwitch> parse_slurm_topology_yaml(const std::string& text,
                                                  const std::string& origin) {
  const NamedTopology* chosen = nullptr;
  const auto all = topologies_of(entries_of(text, origin), origin);
  for (const NamedTopology& one : all) {
    const auto usable = [](const NamedTopology* t) { return !leaves_of(t->switches).empty(); };
    if (!usable(&one)) continue;
    if (chosen == nullptr || (one.is_default && !chosen->is_default)) chosen = &one;
  }
  if (chosen == nullptr)
    throw DataError("{}: no topology with a switch, block or ring that has nodes", origin);
  return leaves_of(chosen->switches);
}

std::vector<LeafSwitch> read_slurm_topology(const std::filesystem::path& file) {
  const std::string text = read_file(file, kMaxBytes);
  const bool yaml = file.extension() == ".yaml" || file.extension() == ".yml";
  return yaml ? parse_slurm_topology_yaml(text, file.string())
              : parse_slurm_topology(text, file.string());
}

}  // namespace mm::health
