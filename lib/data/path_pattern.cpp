#include "lib/data/path_pattern.h"

#include <glob.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "lib/base/error.h"

namespace mm::data {
namespace {

constexpr size_t kMaxNames = 1'000'000;

/// A group "{...}" at [begin, end) and what it stands for.
struct Group {
  size_t begin = 0, end = 0;
  std::vector<std::string> words;
};

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.starts_with('-'))
    return std::nullopt;
  return value;
}

std::vector<std::string> range_words(std::string_view inside) {
  const size_t dots = inside.find("..");
  if (dots == std::string_view::npos) return {};
  const auto first = number(inside.substr(0, dots)), last = number(inside.substr(dots + 2));
  if (!first || !last) return {};
  const int64_t step = *first <= *last ? 1 : -1;
  if (static_cast<uint64_t>((*last - *first) * step) >= kMaxNames)
    throw UsageError("{{{}}}: the range names more than {} files", inside, kMaxNames);
  std::vector<std::string> words;
  for (int64_t i = *first; i != *last + step; i += step)
    words.push_back(fmt::format("{:0{}}", i, dots));
  return words;
}

/// `inside` cut at commas outside inner braces.
std::vector<std::string> list_words(std::string_view inside) {
  std::vector<std::string> words(1);
  int depth = 0;
  for (const char c : inside) {
    if (c == ',' && depth == 0) {
      words.emplace_back();
      continue;
    }
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    words.back() += c;
  }
  return words.size() > 1 ? words : std::vector<std::string>();
}

/// The first group of `pattern` from `from` on that stands for something.
std::optional<Group> find_group(const std::string& pattern, size_t from) {
  for (size_t begin = pattern.find('{', from); begin != std::string::npos;
       begin = pattern.find('{', begin + 1)) {
    int depth = 0;
    for (size_t i = begin; i < pattern.size(); ++i) {
      depth += pattern[i] == '{' ? 1 : pattern[i] == '}' ? -1 : 0;
      if (depth > 0) continue;
      const std::string_view inside = std::string_view(pattern).substr(begin + 1, i - begin - 1);
      Group group{begin, i + 1, range_words(inside)};
      if (group.words.empty()) group.words = list_words(inside);
      if (!group.words.empty()) return group;
      break;
    }
  }
  return std::nullopt;
}

void expand_into(const std::string& pattern, size_t from, std::vector<std::string>& out) {
  const auto group = find_group(pattern, from);
  if (!group) {
    if (out.size() == kMaxNames)
      throw UsageError("the pattern names more than {} files", kMaxNames);
    out.push_back(pattern);
    return;
  }
  for (const std::string& word : group->words) {
    std::string next = pattern;
    next.replace(group->begin, group->end - group->begin, word);
    expand_into(next, group->begin, out);
  }
}

/// glob() alone: sorting by bytes is ours.
std::vector<std::filesystem::path> glob_files(const std::string& pattern) {
  glob_t found{};
  const int code = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_NOESCAPE, nullptr, &found);
  std::vector<std::string> names(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (code != 0 && code != GLOB_NOMATCH) throw IoError("{}: cannot list its files", pattern);
  std::sort(names.begin(), names.end());
  return {names.begin(), names.end()};
}

}  // namespace

bool is_pattern(const std::filesystem::path& path) {
  const std::string name = path.string();
  if (name.find_first_of("*?{") == std::string::npos) return false;
  std::error_code error;
  return !std::filesystem::exists(path, error);
}

std::vector<std::string> expand_braces(const std::string& pattern) {
  std::vector<std::string> names;
  expand_into(pattern, 0, names);
  return names;
}

std::vector<std::filesystem::path> expand_pattern(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : expand_braces(path.string())) {
    if (name.find_first_of("*?") == std::string::npos) {
      if (!std::filesystem::exists(name))
        throw IoError("{}: no such file (of {})", name, path.string());
      files.emplace_back(name);
      continue;
    }
    const auto found = glob_files(name);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace mm::data
