#include "lib/data/key_filter.h"

#include <algorithm>
#include <vector>

#include "lib/base/error.h"
#include "lib/data/text_stream.h"

namespace mm::data {
namespace {

const std::string& key_of(const SourceItem& item) {
  return std::visit([](const auto& row) -> const std::string& { return row.key; }, item);
}

}  // namespace

KeyFilter::KeyFilter(const std::filesystem::path& ids, const std::filesystem::path& exclude)
    : ids_(read_list(ids)), exclude_(read_list(exclude)) {}

std::optional<KeyFilter::List> KeyFilter::read_list(const std::filesystem::path& path) {
  if (path.empty()) return std::nullopt;
  List list{path, {}};
  TextStream in(path);
  for (std::string line; read_line(in, line);) {
    if (line.empty()) continue;
    if (!list.seen.emplace(line, false).second)
      throw DataError("{}: key \"{}\" is listed twice", path.string(), line);
  }
  return list;
}

bool KeyFilter::keep(const SourceItem& item) {
  bool keep = true;
  if (ids_) {
    const auto found = ids_->seen.find(key_of(item));
    keep = found != ids_->seen.end();
    if (keep) found->second = true;
  }
  if (exclude_) {
    const auto found = exclude_->seen.find(key_of(item));
    if (found != exclude_->seen.end()) {
      found->second = true;
      keep = false;
    }
  }
  left_out_ += !keep;
  return keep;
}

void KeyFilter::check_list(const List& list) {
  std::vector<std::string> unseen;
  for (const auto& [key, seen] : list.seen) {
    if (!seen) unseen.push_back(key);
  }
  if (unseen.empty()) return;
  throw DataError(
      "{}: {} of {} keys are in no row of the source, the first is \"{}\"; a key is a row's id, "
      "else its picture's path",
      list.path.string(), unseen.size(), list.seen.size(),
      *std::min_element(unseen.begin(), unseen.end()));
}

void KeyFilter::check_all_seen() const {
  if (ids_) check_list(*ids_);
  if (exclude_) check_list(*exclude_);
}

}  // namespace mm::data
