#include "lib/ckpt/tensor_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "lib/base/text_escape.h"

namespace mm::ckpt {
namespace {

using Child = std::pair<std::string, const TensorTree*>;

std::optional<uint64_t> leading_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// Layer 10 behind layer 9.
bool natural_less(const Child& a, const Child& b) {
  const auto left = leading_number(a.first), right = leading_number(b.first);
  if (left && right && *left != *right) return *left < *right;
  return a.first < b.first;
}

std::vector<Child> sorted_children(const TensorTree& node, const std::string& prefix) {
  std::vector<Child> children;
  for (const auto& [name, child] : node.children) children.emplace_back(name, &child);
  std::sort(children.begin(), children.end(), natural_less);
  for (Child& child : children) {
    child.first = prefix + child.first;
    while (child.second->children.size() == 1) {
      const auto& [name, only] = *child.second->children.begin();
      if (only.tensors != child.second->tensors) break;
      child = {child.first + name, &only};
    }
  }
  return children;
}

void append_lines(const TensorTree& node, int depth, int indent, std::string& out) {
  constexpr int kNameWidth = 48;
  for (const auto& [name, child] : sorted_children(node, "")) {
    const std::string shown = std::string(static_cast<size_t>(indent), ' ') + escape_text(name);
    out += fmt::format("{:<{}} {:>7} {} {:>10}\n", shown, kNameWidth, child->tensors,
                       child->tensors == 1 ? "tensor " : "tensors", size_text(child->bytes));
    if (depth > 1) append_lines(*child, depth - 1, indent + 2, out);
  }
}

}  // namespace

void TensorTree::add(std::string_view name, uint64_t size_bytes) {
  TensorTree* node = this;
  node->tensors += 1;
  node->bytes += size_bytes;
  while (!name.empty()) {
    const size_t cut = std::min(name.find_first_of("./"), name.size() - 1) + 1;
    node = &node->children[std::string(name.substr(0, cut))];
    node->tensors += 1;
    node->bytes += size_bytes;
    name.remove_prefix(cut);
  }
}

std::vector<std::pair<std::string, const TensorTree*>> TensorTree::parts() const& {
  const TensorTree* node = this;
  std::string prefix;
  while (node->children.size() == 1) {
    prefix += node->children.begin()->first;
    node = &node->children.begin()->second;
  }
  if (node->children.empty()) return {{prefix, node}};
  return sorted_children(*node, prefix);
}

std::string TensorTree::text(int depth) const {
  std::string out;
  append_lines(*this, depth, 2, out);
  return out;
}

std::string size_text(uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace mm::ckpt
