#include "lib/data/json_array_reader.h"

#include "lib/base/error.h"

namespace mm::data {

JsonArrayReader::JsonArrayReader(const std::filesystem::path& path) : in_(path) {
  if (skip_blanks() != '[')
    fail("expected '[': a LLaVA file is one JSON array (use --format jsonl for one object a line)");
  in_.get();
}

void JsonArrayReader::fail(std::string_view what) const {
  throw DataError("{}: byte {}: {}", in_.path().string(), in_.offset(), what);
}

int JsonArrayReader::skip_blanks() {
  int byte = in_.peek();
  while (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t') {
    in_.get();
    byte = in_.peek();
  }
  return byte;
}

void JsonArrayReader::take(std::string& element) {
  if (element.size() == kMaxRowBytes) fail("the element is longer than 64 MiB");
  element.push_back(static_cast<char>(in_.get()));
}

void JsonArrayReader::scan_string(std::string& element) {
  take(element);
  for (int byte = in_.peek(); byte != '"'; byte = in_.peek()) {
    if (byte == TextStream::kEnd) fail("the file ends inside a string; it is cut off");
    take(element);
    if (byte == '\\' && in_.peek() != TextStream::kEnd) take(element);
  }
  take(element);
}

void JsonArrayReader::scan_element(std::string& element) {
  int depth = 0;
  for (int byte = in_.peek();; byte = in_.peek()) {
    if (byte == TextStream::kEnd) fail("the file ends inside the array; it is cut off");
    if (depth == 0 && (byte == ',' || byte == ']')) return;
    if (byte == '"') {
      scan_string(element);
      continue;
    }
    if (byte == '{' || byte == '[') ++depth;
    if ((byte == '}' || byte == ']') && --depth < 0) fail("closing bracket without an opening one");
    take(element);
  }
}

bool JsonArrayReader::next(std::string& element) {
  element.clear();
  if (ended_) return false;
  int byte = skip_blanks();
  const bool end = byte == ']';
  if (!first_ && !end) {
    if (byte != ',') fail("expected ',' or ']'");
    in_.get();
    byte = skip_blanks();
    if (byte == ']') fail("',' before ']'");
  }
  if (end) {
    in_.get();
    if (skip_blanks() != TextStream::kEnd) fail("text after the end of the array");
    ended_ = true;
    return false;
  }
  first_ = false;
  element_offset_ = in_.offset();
  scan_element(element);
  if (element.empty()) fail("an element is missing");
  return true;
}

}  // namespace mm::data
