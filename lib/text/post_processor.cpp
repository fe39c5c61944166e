#include "lib/text/post_processor.h"

#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/text/json_fields.h"

namespace mm::text {
namespace {

using nlohmann::json;

constexpr int64_t kMaxId = 16'000'000;

int32_t id_of(const json& value, std::string_view origin) {
  const int64_t id = value.is_number_unsigned() ? value.get<int64_t>() : -1;
  if (id < 0 || id > kMaxId)
    throw DataError("{}: the post-processor has an id that is not between 0 and {}", origin,
                    kMaxId);
  return static_cast<int32_t>(id);
}

const json& field(const json& object, const char* key, std::string_view origin) {
  if (!object.is_object() || !object.contains(key))
    throw DataError("{}: the post-processor lacks \"{}\"", origin, key);
  return object[key];
}

void append_special(const json& processor, const json& special, std::string_view origin,
                    std::vector<int32_t>& out) {
  const std::string name = text_field(special, "id", "", origin);
  const json& known = field(processor, "special_tokens", origin);
  if (!known.is_object() || !known.contains(name))
    throw DataError("{}: the post-processor's token \"{}\" is not among its special tokens", origin,
                    name);
  for (const json& id : list_field(known[name], "ids", origin)) out.push_back(id_of(id, origin));
}

Wrapping read_template(const json& processor, std::string_view origin) {
  Wrapping out;
  int texts = 0;
  for (const json& part : list_field(processor, "single", origin)) {
    if (part.is_object() && part.contains("Sequence")) {
      ++texts;
    } else {
      append_special(processor, field(part, "SpecialToken", origin), origin,
                     texts == 0 ? out.before : out.after);
    }
  }
  if (texts != 1)
    throw DataError("{}: the post-processor's template for one text holds {} texts", origin, texts);
  return out;
}

int32_t pair_id(const json& processor, const char* key, std::string_view origin) {
  const json& pair = list_field(processor, key, origin);
  if (pair.size() != 2)
    throw DataError("{}: \"{}\" of the post-processor is not a token and its id", origin, key);
  return id_of(pair[1], origin);
}

Wrapping read(const json& processor, std::string_view origin, int depth);

// A later processor stands outside of the earlier ones.
Wrapping read_sequence(const json& processor, std::string_view origin, int depth) {
  if (depth > 8) throw DataError("{}: post-processors are nested too deep", origin);
  Wrapping out;
  for (const json& inner : list_field(processor, "processors", origin)) {
    const Wrapping outer = read(inner, origin, depth + 1);
    out.before.insert(out.before.begin(), outer.before.begin(), outer.before.end());
    out.after.insert(out.after.end(), outer.after.begin(), outer.after.end());
  }
  return out;
}

Wrapping read(const json& processor, std::string_view origin, int depth) {
  const std::string type = type_of(processor);
  if (type == "ByteLevel") return {};  // changes offsets only
  if (type == "Sequence") return read_sequence(processor, origin, depth);
  if (type == "TemplateProcessing") return read_template(processor, origin);
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return {{pair_id(processor, "cls", origin)}, {pair_id(processor, "sep", origin)}};
  refuse_type("post-processor", processor, origin);
}

}  // namespace

Wrapping read_post_processor(const json& processor, std::string_view origin) {
  return processor.is_null() ? Wrapping{} : read(processor, origin, 0);
}

}  // namespace mm::text
