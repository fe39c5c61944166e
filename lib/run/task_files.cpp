#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/run/task_scores.h"

namespace mm::run {
namespace {

std::string key_of(const Json& row, const std::string& where) {
  for (const char* name : {"key", "image_id", "question_id", "id"}) {
    const auto found = row.find(name);
    if (found == row.end()) continue;
    if (found->is_string()) return found->get<std::string>();
    if (found->is_number_integer()) return found->dump();
  }
  throw DataError("{}: expected a \"key\" or \"image_id\", a string or a whole number", where);
}

std::vector<std::string> strings_of(const Json& value, const std::string& where) {
  std::vector<std::string> all;
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) throw DataError("{}: expected a string or a list of strings", where);
  for (const Json& entry : value) {
    if (!entry.is_string()) throw DataError("{}: expected a list of strings", where);
    all.push_back(entry.get<std::string>());
  }
  return all;
}

std::map<std::string, std::vector<std::string>> lists_of(const Json& file, const char* key,
                                                         const std::string& origin) {
  const auto table = file.is_object() ? file.find(key) : file.end();
  if (table == file.end() || !table->is_object())
    throw DataError("{}: expected an object with \"{}\", an object of lists", origin, key);
  std::map<std::string, std::vector<std::string>> lists;
  for (const auto& [name, value] : table->items())
    lists[name] = strings_of(value, fmt::format("{}: {}.{}", origin, key, name));
  return lists;
}

/// A key that is a whole number as LLaVA's scorers want it: as one.
Json question_id(const std::string& key) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error == std::errc() && end == key.data() + key.size() && std::to_string(number) == key)
    return number;
  return key;
}

}  // namespace

void read_captions(const std::filesystem::path& path, TaskReferences& references) {
  const std::string text = read_file(path);
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const std::string where = fmt::format("{}: line {}", path.string(), ++number);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json row = parse_json(line, where);
    if (!row.is_object()) throw DataError("{}: expected an object", where);
    const auto captions = row.contains("captions") ? row.find("captions") : row.find("caption");
    if (captions == row.end()) throw DataError("{}: expected \"captions\" or \"caption\"", where);
    auto& all = references.captions[key_of(row, where)];
    for (std::string& caption : strings_of(*captions, where)) all.push_back(std::move(caption));
    if (all.empty()) throw DataError("{}: no caption", where);
  }
}

void read_objects(const std::filesystem::path& path, TaskReferences& references) {
  const Json file = read_json_file(path);
  references.synonyms = lists_of(file, "synonyms", path.string());
  for (auto& [key, objects] : lists_of(file, "objects", path.string()))
    references.objects[key] = {objects.begin(), objects.end()};
}

void write_answers(const std::filesystem::path& path, std::span<const AnsweredSample> samples,
                   const std::string& model_id) {
  std::string lines;
  for (const AnsweredSample& sample : samples) {
    const std::string id = fmt::format("{:016x}", xxh3_64(sample.key + "\n" + sample.answer));
    lines += Json{{"question_id", question_id(sample.key)},
                  {"prompt", sample.prompt},
                  {"text", sample.answer},
                  {"answer_id", id},
                  {"model_id", model_id},
                  {"metadata", Json::object()}}
                 .dump() +
             "\n";
  }
  write_file_atomic(path, lines);
}

}  // namespace mm::run
