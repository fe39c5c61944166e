#include "lib/base/json.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/text_escape.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<nlohmann::ordered_json>;
template class std::vector<nlohmann::ordered_json>;

namespace mm {
namespace {

// Reads bytes for nlohmann's lexer and leaves the position where the builder can see it.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** position) : at_(at), position_(position) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *position_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  const char** position_;
};

// Builds the document from parser events; depth and keys are checked before anything is stored.
// Names of an object are found by hash, so a hostile object of a million keys costs a million steps
// (ordered_json's own insertion compares with all).
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return refuse("binary value"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Frame& frame = frames_.back();
    auto& members = static_cast<Members&>(frame.value->get_ref<Json::object_t&>());
    const auto [found, inserted] = frame.slots.emplace(name, members.size());
    if (!inserted && limits_.reject_duplicate_keys) {
      return refuse(fmt::format("key \"{}\" appears twice", escape_text(name)));
    }
    if (inserted) members.emplace_back(name, nullptr);
    frame.slot = found->second;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    // "[json.exception...] parse error at line 1, column 5: reason": what counts stands behind the
    // position.
    std::string reason = error.what();
    const size_t end_of_id = reason.find("] ");
    if (end_of_id != std::string::npos) reason.erase(0, end_of_id + 2);
    const size_t end_of_place = reason.find(": ");
    if (reason.starts_with("parse error at") && end_of_place != std::string::npos) {
      reason.erase(0, end_of_place + 2);
    }
    return refuse(escape_text(reason));
  }

  const std::string& reason() const { return reason_; }
  Json take() { return std::move(root_); }

 private:
  using Members = std::vector<std::pair<const std::string, Json>>;
  struct Frame {
    Json* value;
    std::unordered_map<std::string, size_t> slots;
    size_t slot = 0;
  };

  bool refuse(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  Json* place(Json value) {
    if (frames_.empty()) return &(root_ = std::move(value));
    Frame& frame = frames_.back();
    if (frame.value->is_array()) {
      frame.value->push_back(std::move(value));
      return &frame.value->back();
    }
    auto& members = static_cast<Members&>(frame.value->get_ref<Json::object_t&>());
    return &(members[frame.slot].second = std::move(value));
  }

  template <typename T>
  bool put(T&& value) {
    place(Json(std::forward<T>(value)));
    return true;
  }

  bool open(Json container) {
    if (frames_.size() >= static_cast<size_t>(limits_.max_depth)) {
      return refuse(fmt::format("nested deeper than {} levels", limits_.max_depth));
    }
    frames_.push_back({place(std::move(container)), {}, 0});
    return true;
  }

  bool close() {
    frames_.pop_back();
    return true;
  }

  JsonLimits limits_;
  Json root_;
  std::vector<Frame> frames_;
  std::string reason_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view origin, const JsonLimits& limits) {
  // nlohmann's lexer takes a zero byte for the end of the text and would accept whatever follows.
  const size_t zero_at = text.find('\0');
  if (zero_at != std::string_view::npos) {
    throw DataError("{}: byte {}: invalid JSON: zero byte", origin, zero_at);
  }
  const char* begin = text.data();
  const char* position = begin;
  Builder builder(limits);
  const bool ok = Json::sax_parse(CountingIterator(begin, &position),
                                  CountingIterator(begin + text.size(), &position), &builder);
  if (!ok) {
    throw DataError("{}: byte {}: invalid JSON: {}", origin, position - begin, builder.reason());
  }
  return builder.take();
}

Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(read_file(path), path.string(), limits);
}

}  // namespace mm
