#include "lib/data/source_flags.h"

#include "lib/base/error.h"
#include "lib/data/path_pattern.h"

namespace mm::data {
namespace {

/// Value for path `i`, if there is any.
template <typename T>
const T* value_for(const std::vector<T>& values, size_t i) {
  if (values.empty()) return nullptr;
  return &values[values.size() == 1 ? 0 : i];
}

void check_count(std::string_view flag, size_t count, size_t paths, bool one_for_all) {
  if (count == 0 || count == paths || (one_for_all && count == 1)) return;
  throw UsageError("{} is given {} times for {} sources; give it {}once for each", flag, count,
                   paths, one_for_all ? "once, or " : "");
}

SourceOptions options_of(const SourceFlags& flags, size_t i) {
  SourceOptions options = flags.common;
  options.path = flags.paths[i];
  if (!std::filesystem::exists(options.path) && !is_pattern(options.path))
    throw UsageError("{}: no such file or folder", options.path.string());
  const std::string* name = value_for(flags.formats, i);
  SourceFormat format;
  if (name == nullptr || *name == "auto") {
    format.kind = sniff_source(options.path);
  } else if (const auto known = source_format_from_name(*name)) {
    format = *known;
  } else {
    throw UsageError("format \"{}\" is unknown; known: auto, {}", *name,
                     fmt::join(source_format_names(), ", "));
  }
  options.kind = format.kind;
  options.shape = format.shape;
  if (const auto* root = value_for(flags.image_roots, i)) options.image_root = *root;
  return options;
}

}  // namespace

SourceOptions source_from_flags(const SourceFlags& flags) {
  const size_t count = flags.paths.size();
  if (count == 0) throw UsageError("no source is named");
  check_count("--weight", flags.weights.size(), count, false);
  check_count("--repeat", flags.repeats.size(), count, false);
  check_count("--format", flags.formats.size(), count, true);
  check_count("--image-root", flags.image_roots.size(), count, true);
  if (count == 1 && flags.weights.empty() && flags.repeats.empty()) return options_of(flags, 0);
  SourceOptions mixture = flags.common;
  mixture.kind = SourceKind::kMixture;
  mixture.path =
      count == 1 ? flags.paths[0] : fmt::format("{} and {} more", flags.paths[0], count - 1);
  for (size_t i = 0; i < count; ++i) {
    SourcePart part{options_of(flags, i)};
    if (part.options.kind == SourceKind::kMixture)
      throw UsageError("{}: mixtures do not hold mixtures", flags.paths[i]);
    if (!flags.weights.empty()) part.weight = flags.weights[i];
    if (!flags.repeats.empty()) part.repeat = flags.repeats[i];
    mixture.parts.push_back(std::move(part));
  }
  return mixture;
}

}  // namespace mm::data
