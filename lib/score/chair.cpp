#include "lib/score/chair.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/score/ngrams.h"

namespace mm::score {
namespace {

double ratio(size_t part, size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

ObjectFinder::ObjectFinder(const std::map<std::string, std::vector<std::string>>& synonyms) {
  for (const auto& [object, words] : synonyms) {
    for (const std::string& word : words) {
      const auto [at, is_new] = object_of_.emplace(word, object);
      if (!is_new && at->second != object)
        throw DataError("\"{}\" names both {} and {}; expected each word to name one object", word,
                        at->second, object);
    }
  }
}

std::vector<std::string> ObjectFinder::mentions(std::string_view caption) const {
  const auto words = words_of(caption);
  std::vector<std::string> found;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto two =
        i + 1 < words.size() ? object_of_.find(words[i] + ' ' + words[i + 1]) : object_of_.end();
    if (two != object_of_.end()) {
      found.push_back(two->second);
      ++i;
    } else if (const auto one = object_of_.find(words[i]); one != object_of_.end()) {
      found.push_back(one->second);
    }
  }
  return found;
}

Chair chair(std::span<const ChairCase> cases, const ObjectFinder& finder) {
  Chair result;
  size_t mentions = 0, wrong = 0, captions_with = 0, objects = 0, seen = 0;
  for (const ChairCase& one : cases) {
    const auto found = finder.mentions(one.caption);
    std::vector<std::string> absent;
    std::ranges::copy_if(found, std::back_inserter(absent),
                         [&](const std::string& object) { return !one.truth.contains(object); });
    mentions += found.size();
    wrong += absent.size();
    captions_with += absent.empty() ? 0 : 1;
    objects += one.truth.size();
    const std::set<std::string> distinct(found.begin(), found.end());
    seen += static_cast<size_t>(std::ranges::count_if(
        distinct, [&](const std::string& object) { return one.truth.contains(object); }));
    result.mentions.push_back(found);
    result.hallucinated.push_back(std::move(absent));
  }
  result.per_instance = ratio(wrong, mentions);
  result.per_sentence = ratio(captions_with, cases.size());
  result.recall = ratio(seen, objects);
  return result;
}

}  // namespace mm::score
