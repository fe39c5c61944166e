#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "lib/base/error.h"
#include "lib/text/utf8.h"
#include "tests/data/source_reading.h"

namespace mm::data::test {

/// Mutations of each seed: short on every change, more with MM_LONG=1.
inline int fuzz_rounds(int short_rounds) {
  const char* value = std::getenv("MM_LONG");
  return value != nullptr && std::string(value) == "1" ? short_rounds * 20 : short_rounds;
}

/// A few random edits: flipped, overwritten, removed, doubled and inserted bytes, a cut end.
inline std::string mutate(std::string bytes, std::mt19937_64& random) {
  static const std::string kTokens[] = {"\"",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        "\\",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        "null",
                                        "-1",
                                        "1e999",
                                        "\xff",
                                        "\xed\xa0\x80",
                                        "<image>",
                                        std::string(1, '\0'),
                                        "data:;base64,",
                                        "../",
                                        "9999999999999999999"};
  for (auto edits = 1 + random() % 4; edits > 0 && !bytes.empty(); --edits) {
    const size_t at = random() % bytes.size();
    const size_t length = std::min(bytes.size() - at, size_t{1} + random() % 40);
    switch (random() % 7) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 4:
        bytes.insert(at, kTokens[random() % std::size(kTokens)]);
        break;
      case 5:
        bytes.replace(at, length, length, static_cast<char>('0' + random() % 10));
        break;
      default:
        if (random() % 4 == 0) bytes.resize(at);
    }
  }
  return bytes;
}

/// Reads a source to its end. Every item is a whole record or a named entry; a file that is broken
/// as a whole throws one of our errors. Returns the number of items.
inline size_t read_hostile(const SourceOptions& options, size_t most) {
  size_t items = 0;
  try {
    const auto source = open_source(options);
    while (auto item = source->next()) {
      if (++items > most) {
        // Only a repeat may give more rows than the file has bytes.
        REQUIRE(
            (options.kind == SourceKind::kMixture || options.kind == SourceKind::kInternvlMeta));
        return items;
      }
      if (const auto* entry = std::get_if<LedgerEntry>(&*item)) {
        REQUIRE(!entry->kind.empty());
        REQUIRE(!entry->message.empty());
        continue;
      }
      const auto& row = std::get<Record>(*item);
      REQUIRE(text::is_valid_utf8(row.key));
      REQUIRE(!row.conversation.turns.empty());
      REQUIRE(row.carried.size() <= row.images.size());
      REQUIRE(row.conversation.images == static_cast<int32_t>(row.images.size()));
    }
  } catch (const mm::Error& error) {
    REQUIRE(std::string(error.what()).size() > 0);
  }
  return items;
}

/// Mutates `seed` many times in file `name` of `dir` and reads each.
inline void fuzz_source(const TempDir& dir, const std::string& name, SourceKind kind,
                        const std::string& seed, int short_rounds = 500) {
  std::mt19937_64 random(xxh3_64(name));
  const auto path = dir / name;
  for (int round = fuzz_rounds(short_rounds); round > 0; --round) {
    const std::string bytes = mutate(seed, random);
    {
      File file = File::create(path);
      file.write(bytes);
    }
    read_hostile({.kind = kind, .path = path}, bytes.size() + 100);
    try {
      sniff_source(path);
    } catch (const mm::DataError& error) {
      REQUIRE(std::string(error.what()).find("bytes that are no text") != std::string::npos);
    }
  }
}

}  // namespace mm::data::test
