#pragma once
#include <random>
#include <string>

namespace mm::health::test {

/// Broken relatives of a text, the same ones on every run: bytes changed, cut off, doubled,
/// swapped.
class Mutations {
 public:
  explicit Mutations(std::string text, unsigned seed = 1) : text_(std::move(text)), random_(seed) {}
  std::string next() {
    std::string text = text_;
    for (int change = draw(1, 3); change > 0 && !text.empty(); --change) {
      const size_t at = place(text);
      switch (draw(0, 4)) {
        case 0:
          text[at] = static_cast<char>(draw(0, 255));
          break;
        case 1:
          text.resize(at);
          break;
        case 2:
          text.insert(at, text.substr(place(text), 40));
          break;
        case 3:
          text.erase(at, static_cast<size_t>(draw(1, 20)));
          break;
        default:
          text.insert(at, kOdd[static_cast<size_t>(draw(0, kOdds - 1))]);
      }
    }
    return text;
  }

 private:
  static constexpr int kOdds = 9;
  static constexpr const char* kOdd[kOdds] = {"99999999999999999999",
                                              "-1",
                                              "null",
                                              "\x1b[2J",
                                              "[0-99999999]",
                                              "\xff\xfe",
                                              "{\"",
                                              "]}",
                                              "1e400"};
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  size_t place(const std::string& text) {
    return text.empty() ? 0 : static_cast<size_t>(draw(0, static_cast<int>(text.size()) - 1));
  }

  std::string text_;
  std::mt19937 random_;
};

}  // namespace mm::health::test
