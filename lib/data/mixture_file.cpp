#include <utility>

#include "lib/base/config.h"
#include "lib/data/source_openers.h"

namespace mm::data {
namespace {

constexpr double kMaxWeight = 1e9, kMaxRepeat = 1e6;

EnumOption format_option() {
  EnumOption option{source_format_names(), "auto", "how the rows are stored"};
  option.words.insert(option.words.begin(), "auto");
  return option;
}

SourcePart part_of(ConfigTable table, const SourceOptions& options) {
  SourcePart part{options};
  SourceOptions& source = part.options;
  source.path = table.get_path("path", {.doc = "file, pattern or folder"});
  const std::string format = table.get_enum("format", format_option());
  const SourceFormat known =
      format == "auto" ? SourceFormat{sniff_source(source.path)} : *source_format_from_name(format);
  source.kind = known.kind;
  source.shape = known.shape;
  if (source.kind == SourceKind::kMixture)
    table.fail("path", "is a mixture; mixtures do not hold mixtures");
  if (const auto root = table.find_path("image_root", {.doc = "where picture paths start"}))
    source.image_root = *root;
  source.question = table.get_string(
      "question", {options.question, /*allow_empty=*/true, "what captions answer"});
  source.kohya = table.get_bool("kohya", {options.kohya, "folder: kohya's conventions"});
  part.weight = table.get_double("weight", {0.0, 0.0, kMaxWeight, "share of the samples"});
  part.repeat = table.get_double("repeat", {1.0, 1e-6, kMaxRepeat, "passes over the source"});
  return part;
}

}  // namespace

std::vector<SourcePart> mixture_parts(const SourceOptions& options) {
  auto document = ConfigDocument::load(options.path);
  ConfigTable root = document.root();
  std::vector<SourcePart> parts;
  for (ConfigTable& table : root.array_of_tables("source"))
    parts.push_back(part_of(table, options));
  if (parts.empty()) root.fail("source", "expected at least one [[source]]");
  root.finish();
  return parts;
}

}  // namespace mm::data
