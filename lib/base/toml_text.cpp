#include "lib/base/toml_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace mm {
namespace {

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

std::string toml_text(int64_t value) { return std::to_string(value); }

std::string toml_text(double value) {
  std::string text = fmt::format("{}", value);
  const bool is_float = text.find_first_of(".einf") != std::string::npos;
  return is_float ? text : text + ".0";
}

std::string toml_text(bool value) { return value ? "true" : "false"; }

std::string toml_text(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string toml_key(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), is_bare);
  return bare ? std::string(key) : toml_text(key);
}

}  // namespace mm
