#include "lib/text/pattern_dialect.h"

#include "lib/base/error.h"

namespace mm::text {
namespace {

// Without brackets, so that they fit into a class.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kWords =
    R"(\p{L}\p{M}\p{N}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
constexpr std::string_view kDigits = R"(\p{Nd})";

class Translator {
 public:
  Translator(std::string_view in, std::string_view origin) : in_(in), origin_(origin) {}

  std::string run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        escape();
      } else if (in_class_) {
        class_character(c);
      } else {
        plain_character(c);
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw DataError("{}: the pattern \"{}\" uses {}, which is not supported", origin_,
                    in_.substr(0, 200), what);
  }

  void set(std::string_view members, bool negated) {
    if (in_class_ && negated) refuse("a negated class inside a class");
    if (!in_class_) out_ += negated ? "[^" : "[";
    out_ += members;
    if (!in_class_) out_ += ']';
    at_ += 2;
  }

  void escape() {
    if (at_ + 1 >= in_.size()) refuse("a lone backslash");
    const char c = in_[at_ + 1];
    switch (c) {
      case 's':
      case 'S':
        return set(kSpaces, c == 'S');
      case 'd':
      case 'D':
        return set(kDigits, c == 'D');
      case 'w':
      case 'W':
        // \p{N} holds the other numbers too: leave them out.
        return c == 'W' || in_class_ ? refuse("\\w in a class, or \\W") : word();
      case 'h':
      case 'H':
      case 'R':
      case 'X':
      case 'K':
      case 'G':
      case 'g':
      case 'k':
      case 'y':
      case 'Y':
        refuse(std::string("\\") + c);
      default:
        if (in_class_ && (c == 'b' || c == 'B')) refuse("\\b in a class");
        out_.append(in_.substr(at_, 2));
        at_ += 2;
    }
  }

  void word() {
    out_ += "(?:(?!\\p{No})[";
    out_ += kWords;
    out_ += "])";
    at_ += 2;
  }

  void class_character(char c) {
    if (c == '[' && !in_.substr(at_).starts_with("[:")) refuse("a class inside a class");
    if (in_.substr(at_).starts_with("&&")) refuse("an intersection of classes");
    if (c == '[') {  // [:name:]
      const size_t end = in_.find(":]", at_);
      if (end == std::string_view::npos) refuse("a class inside a class");
      copy(end + 2 - at_);
      return;
    }
    in_class_ = c != ']';
    copy(1);
  }

  void plain_character(char c) {
    if (c == '^' || c == '$') {
      out_ += c == '^' ? "(?m:^)" : "(?m:$)";
      ++at_;
      return;
    }
    if (c == '[') {
      in_class_ = true;
      copy(1);
      if (at_ < in_.size() && in_[at_] == '^') copy(1);
      if (at_ < in_.size() && in_[at_] == ']') copy(1);
      return;
    }
    if (in_.substr(at_).starts_with("(?")) check_group();
    copy(1);
  }

  // Options may be i only: m and s have each other's meaning in the two dialects.
  void check_group() const {
    const std::string_view rest = in_.substr(at_ + 2);
    if (rest.starts_with("i:") || rest.starts_with("i)") || rest.starts_with("-i:")) return;
    const std::string_view known = ":=!>";
    if (!rest.empty() && known.find(rest[0]) != std::string_view::npos) return;
    if (rest.starts_with("<=") || rest.starts_with("<!")) return;
    refuse("the group (?" + std::string(rest.substr(0, 1)) + "...)");
  }

  void copy(size_t count) {
    out_.append(in_.substr(at_, count));
    at_ += count;
  }

  std::string_view in_, origin_;
  std::string out_;
  size_t at_ = 0;
  bool in_class_ = false;
};

}  // namespace

std::string to_pcre2(std::string_view expression, std::string_view origin) {
  return Translator(expression, origin).run();
}

}  // namespace mm::text
