#include "lib/run/import_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lib/base/edit_distance.h"
#include "lib/base/error.h"
#include "lib/base/text_escape.h"

namespace mm::run::detail {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

template <typename T>
bool parse(std::string_view text, T& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

ImportContext::ImportContext(TrainCommand c, const ImportOptions& o, std::string name)
    : command(std::move(c)), options(o), origin(std::move(name)), flags_(command.flags) {
  for (size_t i = 0; i < flags_.size(); ++i) {
    if (find(flags_[i].key) != &flags_[i])
      report.unmapped.push_back(
          {flags_[i].flag, flags_[i].value(), "given again behind it; the last one counts", true});
  }
  for (const std::string& word : command.strays)
    report.unmapped.push_back({word, "", "belongs to no flag", false});
}

void ImportContext::add(std::vector<ImportFlag> flags) {
  for (ImportFlag& flag : flags) flags_.push_back(std::move(flag));
}

const ImportFlag* ImportContext::find(std::string_view key) const {
  const auto at = std::find_if(flags_.rbegin(), flags_.rend(),
                               [&](const ImportFlag& flag) { return flag.key == key; });
  return at == flags_.rend() ? nullptr : &*at;
}

void ImportContext::fail(std::string_view key, const std::string& expected) const {
  const ImportFlag* flag = find(key);
  throw DataError("{}: {} {}: expected {}", origin, escape_text(flag ? flag->flag : key, 80),
                  flag ? escape_text(flag->value(), 80) : "", expected);
}

std::string ImportContext::shown(std::string_view key) const {
  const ImportFlag* flag = find(key);
  return flag ? escape_text(flag->value(), 80) : "";
}

std::optional<std::string> ImportContext::text(std::string_view key) {
  const ImportFlag* flag = find(key);
  if (!flag) return std::nullopt;
  const std::string value = flag->value();
  if (is_unresolved(value)) {
    lose(key, fmt::format("{} has no known value; give it with --var NAME=VALUE, or as an argument "
                          "of the script",
                          unresolved_part(value)));
    return std::nullopt;
  }
  if (value.empty()) fail(key, "a value");
  return value;
}

std::optional<int64_t> ImportContext::integer(std::string_view key, int64_t min, int64_t max) {
  const auto value = text(key);
  if (!value) return std::nullopt;
  int64_t number = 0;
  double real = 0;
  // Python's argparse takes 1e4 for a float flag only; some scripts write it for steps.
  const bool good = parse(*value, number) ||
                    (parse(*value, real) && std::abs(real) < 9e15 && real == std::floor(real) &&
                     (number = static_cast<int64_t>(real), true));
  if (!good || number < min || number > max)
    fail(key, fmt::format("a whole number from {} to {}", min, max));
  return number;
}

std::optional<double> ImportContext::number(std::string_view key, double min, double max) {
  const auto value = text(key);
  if (!value) return std::nullopt;
  double number = 0;
  if (!parse(*value, number) || !std::isfinite(number) || number < min || number > max)
    fail(key, fmt::format("a number from {} to {}", min, max));
  return number;
}

bool ImportContext::truth(std::string_view key, bool otherwise) {
  const ImportFlag* flag = find(key);
  if (!flag) return otherwise;
  if (flag->values.empty()) return true;
  const auto value = text(key);
  if (!value) return otherwise;
  const std::string word = lower(*value);
  for (const char* yes : {"true", "1", "yes", "y", "t", "on"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "0", "no", "n", "f", "off"}) {
    if (word == no) return false;
  }
  fail(key, "True or False");
}

void ImportContext::map(std::initializer_list<std::string_view> flags, std::string_view key,
                        std::string_view setting) {
  for (const std::string_view name : flags) {
    const ImportFlag* flag = find(name);
    if (!flag || is_unresolved(flag->value())) continue;
    report.mapped.push_back({flag->flag, flag->value(), std::string(key), std::string(setting)});
    claimed_.insert(flag->key);
  }
}

void ImportContext::set(std::string_view key, const std::string& value,
                        std::initializer_list<std::string_view> flags, std::string remark) {
  draft.set(key, value, std::move(remark));
  map(flags, key, value);
}

void ImportContext::leave_out(std::string_view key, const std::string& reason) {
  draft.leave_out(key, reason);
  report.missing.push_back({std::string(key), reason});
}

void ImportContext::say(std::string_view key, std::string_view reason, bool needless) {
  const ImportFlag* flag = find(key);
  if (!flag || !claimed_.insert(flag->key).second) return;
  report.unmapped.push_back({flag->flag, flag->value(), std::string(reason), needless});
}

void ImportContext::finish(std::span<const FlagRemark> remarks) {
  std::vector<std::string> known;
  for (const FlagRemark& remark : remarks) known.emplace_back(remark.key);
  const std::vector<ImportFlag> all = flags_;
  for (const ImportFlag& flag : all) {
    if (claimed_.contains(flag.key)) continue;
    const auto fits = std::find_if(remarks.begin(), remarks.end(), [&](const FlagRemark& r) {
      return r.key == flag.key &&
             (r.only.empty() || r.only == lower(flag.values.empty() ? "true" : flag.value()));
    });
    if (fits != remarks.end()) {
      say(flag.key, fits->reason, fits->needless);
    } else if (text(flag.key); !claimed_.contains(flag.key)) {
      const auto near = nearest_word(flag.key, known);
      lose(flag.key, "not a flag that this knows" +
                         (near && *near != flag.key ? "; did the run mean --" + *near + "?" : ""));
    }
  }
}

}  // namespace mm::run::detail
