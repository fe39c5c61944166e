#include "lib/run/import_draft.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"

namespace mm::run {
namespace {

// The order in which a reader wants them; others follow by name.
constexpr const char* kTables[] = {"run",       "init",      "model",      "lora",
                                   "precision", "recompute", "checkpoint", "loader"};
constexpr const char* kStageKeys[] = {
    "name", "data", "train", "steps", "sequence_length", "packs_per_step", "packing"};

template <size_t N>
size_t rank_of(const char* const (&order)[N], std::string_view name) {
  return static_cast<size_t>(std::find(std::begin(order), std::end(order), name) -
                             std::begin(order));
}

std::string remark_text(const std::string& remark) {
  return remark.empty() ? "" : "  # " + escape_text(remark, 400);
}

/// Longer lines are broken at blanks; commands, which are indented, are not.
void append_comment(std::string& out, std::string_view text) {
  constexpr size_t kWidth = 118;
  std::string_view indent;
  while (text.size() > kWidth && !text.starts_with("  ")) {
    size_t cut = text.rfind(' ', kWidth);
    if (cut == std::string_view::npos || cut == 0) cut = std::min(text.find(' '), text.size());
    out += fmt::format("# {}{}\n", indent, text.substr(0, cut));
    text.remove_prefix(std::min(text.size(), cut + 1));
    indent = "  ";
  }
  if (!text.empty()) out += fmt::format("# {}{}\n", indent, text);
}

}  // namespace

void RecipeDraft::set(std::string_view key, std::string value, std::string remark) {
  const size_t dot = key.rfind('.');
  MM_CHECK(dot != std::string_view::npos, "{} has a table", key);
  Entry entry{std::string(key.substr(0, dot)), std::string(key.substr(dot + 1)), std::move(value),
              std::move(remark)};
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.table == entry.table && e.key == entry.key;
  });
  if (same != entries_.end()) {
    *same = std::move(entry);
  } else {
    entries_.push_back(std::move(entry));
  }
}

std::optional<std::string> RecipeDraft::get(std::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.present && entry.table + "." + entry.key == key) return entry.value;
  }
  return std::nullopt;
}

void RecipeDraft::leave_out(std::string_view key, std::string reason) {
  set(key, "?", std::move(reason));
  for (Entry& entry : entries_) {
    if (entry.table + "." + entry.key == key) entry.present = false;
  }
}

std::vector<const RecipeDraft::Entry*> RecipeDraft::of_table(std::string_view table) const {
  std::vector<const Entry*> out;
  for (const Entry& entry : entries_) {
    if (entry.table == table) out.push_back(&entry);
  }
  return out;
}

void RecipeDraft::write_stage(std::string& out) const {
  out += "\n[[stage]]\n";
  std::vector<const Entry*> own = of_table("stage");
  std::stable_sort(own.begin(), own.end(), [](const Entry* a, const Entry* b) {
    return rank_of(kStageKeys, a->key) < rank_of(kStageKeys, b->key);
  });
  for (const Entry* e : own)
    out += fmt::format("{}{} = {}{}\n", e->present ? "" : "# ", e->key, e->value,
                       remark_text(e->remark));
  std::vector<std::string> tables;
  for (const Entry& e : entries_) {
    if (e.table.starts_with("stage.") &&
        std::find(tables.begin(), tables.end(), e.table) == tables.end())
      tables.push_back(e.table);
  }
  for (const std::string& table : tables) {
    std::string inside, remarks;
    for (const Entry* e : of_table(table)) {
      if (!e->present) {
        out += fmt::format("# {}.{} = {}{}\n", table.substr(6), e->key, e->value,
                           remark_text(e->remark));
        continue;
      }
      inside += fmt::format("{}{} = {}", inside.empty() ? "" : ", ", e->key, e->value);
      if (!e->remark.empty()) remarks += (remarks.empty() ? "" : "; ") + e->remark;
    }
    if (!inside.empty())
      out += fmt::format("{} = {{ {} }}{}\n", table.substr(6), inside, remark_text(remarks));
  }
}

std::string RecipeDraft::text(const std::vector<std::string>& header) const {
  std::string out;
  for (const std::string& row : header) {
    row.empty() ? out += "#\n" : (append_comment(out, escape_text(row, 16384)), out);
  }
  std::vector<std::string> tables;
  for (const Entry& e : entries_) {
    if (!e.table.starts_with("stage") &&
        std::find(tables.begin(), tables.end(), e.table) == tables.end())
      tables.push_back(e.table);
  }
  std::stable_sort(tables.begin(), tables.end(), [](const std::string& a, const std::string& b) {
    return rank_of(kTables, a) < rank_of(kTables, b);
  });
  for (const std::string& table : tables) {
    out += fmt::format("\n[{}]\n", table);
    for (const Entry* e : of_table(table))
      out += fmt::format("{}{} = {}{}\n", e->present ? "" : "# ", e->key, e->value,
                         remark_text(e->remark));
  }
  write_stage(out);
  return out;
}

}  // namespace mm::run
