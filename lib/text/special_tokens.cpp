#include "lib/text/special_tokens.h"

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/text/json_fields.h"

namespace mm::text {

using nlohmann::json;

constexpr uint64_t kMaxSettingsBytes = uint64_t{256} << 20;

json read_settings(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return json::object();
  json root = parse_limited(read_file(path, kMaxSettingsBytes), path.string());
  if (!root.is_object()) throw DataError("{}: not an object", path.string());
  return root;
}

json SpecialTokens::of(const char* role) const {
  const auto in = [role](const json& file) {
    const auto found = file.find(role);
    return found == file.end() ? json() : *found;
  };
  json value = config.contains("added_tokens_decoder") ? json() : in(map);
  return value.is_null() ? in(config) : value;
}

SpecialTokens read_special_tokens(const std::filesystem::path& directory) {
  return {.config = read_settings(directory / "tokenizer_config.json"),
          .map = read_settings(directory / "special_tokens_map.json")};
}

}  // namespace mm::text
