#include "lib/base/slurm.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"

namespace mm::slurm {
namespace {

constexpr size_t kMaxNodes = 1'000'000;
constexpr size_t kMaxDigits = 12;
constexpr size_t kShownBytes = 120;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A cursor over the text; its complaints name text and place.
class Reader {
 public:
  Reader(std::string_view text, const char* what) : text_(text), what_(what) {}

  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  char take() { return text_[at_++]; }
  bool accept(char c) {
    if (peek() != c || at_end()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  std::string_view digits() {
    const size_t start = at_;
    while (is_digit(peek())) ++at_;
    if (at_ == start) fail("expected a number");
    if (at_ - start > kMaxDigits) fail("number too long");
    return text_.substr(start, at_ - start);
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw UsageError("{} \"{}\": character {}: {}", what_, escape_text(text_, kShownBytes), at_ + 1,
                     reason);
  }

 private:
  std::string_view text_;
  const char* what_;
  size_t at_ = 0;
};

uint64_t to_number(std::string_view digits) {
  uint64_t value = 0;
  for (const char c : digits) value = value * 10 + static_cast<uint64_t>(c - '0');
  return value;
}

// The inside of a bracket: "001-003,007".
std::vector<std::string> read_ranges(Reader& reader) {
  std::vector<std::string> numbers;
  do {
    const std::string_view first = reader.digits();
    const std::string_view last = reader.accept('-') ? reader.digits() : first;
    const uint64_t low = to_number(first);
    const uint64_t high = to_number(last);
    if (high < low) reader.fail(fmt::format("range {}-{} descends", first, last));
    if (high - low >= kMaxNodes - numbers.size()) reader.fail("more than a million hosts");
    for (uint64_t n = low; n <= high; ++n) {
      numbers.push_back(fmt::format("{:0{}}", n, first.size()));
    }
  } while (reader.accept(','));
  reader.expect(']');
  return numbers;
}

bool is_name_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == '.';
}

// One name with its brackets, up to a comma between names or the end.
std::vector<std::string> read_group(Reader& reader) {
  std::vector<std::string> names{""};
  bool empty = true;
  for (; !reader.at_end() && reader.peek() != ','; empty = false) {
    if (reader.accept('[')) {
      const std::vector<std::string> numbers = read_ranges(reader);
      if (names.size() * numbers.size() > kMaxNodes) reader.fail("more than a million hosts");
      std::vector<std::string> product;
      product.reserve(names.size() * numbers.size());
      for (const std::string& name : names) {
        for (const std::string& number : numbers) product.push_back(name + number);
      }
      names = std::move(product);
    } else if (is_name_character(reader.peek())) {
      const char c = reader.take();
      for (std::string& name : names) name += c;
    } else {
      reader.fail("not a character of a host name");
    }
  }
  if (empty) reader.fail("expected a host name");
  return names;
}

}  // namespace

std::vector<std::string> expand_hostlist(std::string_view text) {
  Reader reader(text, "host list");
  std::vector<std::string> hosts;
  do {
    std::vector<std::string> group = read_group(reader);
    if (hosts.size() + group.size() > kMaxNodes) reader.fail("more than a million hosts");
    for (std::string& host : group) hosts.push_back(std::move(host));
  } while (reader.accept(','));
  return hosts;
}

std::vector<int> expand_tasks_per_node(std::string_view text) {
  Reader reader(text, "tasks per node");
  std::vector<int> tasks;
  do {
    const uint64_t count = to_number(reader.digits());
    uint64_t nodes = 1;
    if (reader.accept('(')) {
      reader.expect('x');
      nodes = to_number(reader.digits());
      reader.expect(')');
    }
    if (count == 0 || nodes == 0) reader.fail("expected at least 1");
    if (count > kMaxNodes || nodes > kMaxNodes - tasks.size()) reader.fail("more than a million");
    tasks.insert(tasks.end(), nodes, static_cast<int>(count));
  } while (reader.accept(','));
  if (!reader.at_end()) reader.fail("expected ',' or the end");
  return tasks;
}

}  // namespace mm::slurm
