#include "lib/text/label_names.h"

#include <map>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/json.h"

namespace mm::text {
namespace {

class LabelNames final : public Tokenizer {
 public:
  explicit LabelNames(std::vector<std::string> names) : names_(std::move(names)) {
    for (size_t i = 0; i < names_.size(); ++i) ids_.emplace(names_[i], static_cast<int32_t>(i));
    set_marks({});
  }

  Encoding encode_text(std::string_view text, bool /*at_start*/) const override {
    if (text.empty()) return {};
    const auto id = piece_to_id(text);
    if (!id) throw DataError("\"{}\" is none of the {} class names", text, names_.size());
    return {{*id}, {0}};
  }
  std::string decode(std::span<const int32_t> ids, bool /*keep_marks*/) const override {
    std::string text;
    for (const int32_t id : ids) {
      const std::string name = id_to_piece(id);
      if (!name.empty()) text += (text.empty() ? "" : ", ") + name;
    }
    return text;
  }
  int32_t vocab_size() const override { return static_cast<int32_t>(names_.size()); }
  int32_t bos_id() const override { return -1; }
  int32_t eos_id() const override { return -1; }
  int32_t unk_id() const override { return -1; }
  int32_t pad_id() const override { return -1; }
  std::optional<int32_t> piece_to_id(std::string_view piece) const override {
    const auto found = ids_.find(piece);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }
  std::string id_to_piece(int32_t id) const override {
    return id >= 0 && id < vocab_size() ? names_[static_cast<size_t>(id)] : std::string();
  }

 private:
  const std::vector<std::string> names_;
  std::map<std::string, int32_t, std::less<>> ids_;
};

}  // namespace

std::unique_ptr<Tokenizer> parse_label_names(std::string_view content, std::string_view origin) {
  const Json list = parse_json(content, origin);
  std::vector<std::string> names;
  std::map<std::string, size_t> seen;
  if (!list.is_array() || list.empty())
    throw DataError("{}: expected a list of class names", origin);
  for (const Json& name : list) {
    const std::string text = name.is_string() ? name.get<std::string>() : "";
    if (text.empty() || !seen.emplace(text, names.size()).second)
      throw DataError("{}: class {} is {}, expected a name of its own", origin, names.size(),
                      name.dump(-1, ' ', false, Json::error_handler_t::replace));
    names.push_back(text);
  }
  return std::make_unique<LabelNames>(std::move(names));
}

std::string label_names_file(std::span<const std::string> names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back(name);
  return list.dump(1) + "\n";
}

}  // namespace mm::text
