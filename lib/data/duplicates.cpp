#include "lib/data/duplicates.h"

#include <algorithm>
#include <utility>

#include "lib/base/hash.h"
#include "lib/data/json_fields.h"

namespace mm::data {
namespace {

/// A hash and the row that it is of; sorted, equal hashes stand together in source order.
using Hashed = std::pair<uint64_t, uint64_t>;
using KeyOf = std::function<std::string(uint64_t)>;

/// (later row, first row) of every hash that another row had before. One row that shows a picture
/// twice means to.
std::vector<Hashed> repeats_of(std::vector<Hashed>& hashed) {
  std::sort(hashed.begin(), hashed.end());
  std::vector<Hashed> repeats;
  for (size_t begin = 0, i = 1; i < hashed.size(); ++i) {
    if (hashed[i].first != hashed[begin].first) {
      begin = i;
    } else if (hashed[i].second != hashed[begin].second) {
      repeats.emplace_back(hashed[i].second, hashed[begin].second);
    }
  }
  return repeats;
}

/// The pairs with the lowest later rows.
std::vector<DuplicatePair> examples(std::vector<Hashed> pairs, const KeyOf& key_of) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  std::vector<DuplicatePair> named;
  for (const auto& [row, first] : pairs) {
    if (named.size() == kDuplicateExamples) break;
    named.push_back({row, first, key_of(row)});
  }
  return named;
}

Json pairs_json(const std::vector<DuplicatePair>& pairs) {
  Json json = Json::array();
  for (const DuplicatePair& pair : pairs)
    json.push_back({{"row", pair.row}, {"first", pair.first}, {"key", pair.key}});
  return json;
}

std::vector<DuplicatePair> pairs_from(const Json& json, std::string_view origin) {
  std::vector<DuplicatePair> pairs;
  for (const Json& item : json) {
    const JsonFields in(item, origin);
    pairs.push_back({in.integer<uint64_t>("row"), in.integer<uint64_t>("first"), in.text("key")});
  }
  return pairs;
}

}  // namespace

void DuplicateFinder::add(uint64_t row, std::string_view key, uint32_t repeat,
                          std::span<const uint64_t> picture_hashes) {
  if (repeat > 0) return;
  keys_.emplace_back(xxh3_64(key), row);
  for (const uint64_t hash : picture_hashes) pictures_.emplace_back(hash, row);
}

DuplicateReport DuplicateFinder::report(const KeyOf& key_of) {
  DuplicateReport report;
  auto ids = repeats_of(keys_), pictures = repeats_of(pictures_);
  report.ids = ids.size();
  report.pictures = pictures.size();
  report.id_examples = examples(std::move(ids), key_of);
  report.picture_examples = examples(std::move(pictures), key_of);
  return report;
}

Json to_json(const DuplicateReport& report) {
  return {{"ids", report.ids},
          {"pictures", report.pictures},
          {"id_examples", pairs_json(report.id_examples)},
          {"picture_examples", pairs_json(report.picture_examples)}};
}

std::string duplicates_line(const Json& report, std::string_view origin) {
  if (report.is_null()) return {};
  const auto [ids, pictures, by_id, by_picture] = duplicates_from_json(report, origin);
  if (ids == 0 && pictures == 0) return {};
  std::string line = fmt::format("duplicates {} ids, {} pictures", ids, pictures);
  const auto& named = by_picture.empty() ? by_id : by_picture;
  if (!named.empty()) {
    line += fmt::format(" (the first: \"{}\", row {} repeats row {})", named[0].key, named[0].row,
                        named[0].first);
  }
  return line;
}

DuplicateReport duplicates_from_json(const Json& json, std::string_view origin) {
  const JsonFields in(json, origin);
  return {in.integer<uint64_t>("ids"), in.integer<uint64_t>("pictures"),
          pairs_from(in.array("id_examples"), origin),
          pairs_from(in.array("picture_examples"), origin)};
}

}  // namespace mm::data
