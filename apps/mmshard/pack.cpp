#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/mmshard/verbs.h"
#include "lib/base/error.h"
#include "lib/base/exit_code.h"
#include "lib/base/progress.h"
#include "lib/data/pack_dataset.h"
#include "lib/text/chat_template.h"

namespace mmshard {
namespace {

using namespace mm::data;

constexpr const char* kExamples = R"(Kinds of source:
  folder      pictures, each with a .txt of the same stem beside it; others are skipped
  jsonl       one object a line: image, and caption, text or conversations
  llava-json  one array of such objects
Bad samples are listed in DIR/ledger.jsonl; more than --bad-limit of them is an error (65). Killed and started again
with the same options, pack goes on where it was; a finished DIR is left as it is.

Examples:
  mmshard pack photos/ --out sets/photos --tokenizer tokenizer.model --image-side 224 --patch 16 --caption-lines first
  mmshard pack llava.json --out sets/llava --tokenizer tokenizer.model --image-root coco/ --template vicuna_v1 --storage jpeg)";

struct Flags {
  PackOptions pack;
  PackRun run;
  std::string source_kind = "auto", caption_lines = "all";
  double bad_percent = 1;
  double shard_mib = 256;
  bool json = false, quiet = false;
};

void add_source_options(CLI::App& verb, Flags& flags) {
  SourceOptions& source = flags.pack.source;
  verb.add_option("source", source.path, "Folder or file to pack")
      ->required()
      ->check(CLI::ExistingPath);
  verb.add_option("--source", flags.source_kind, "Kind of source; auto looks at it")
      ->check(CLI::IsMember({"auto", "folder", "jsonl", "llava-json"}))
      ->capture_default_str()
      ->group("Source");
  verb.add_option("--image-root", source.image_root,
                  "Folder that picture paths start from [the source's own]")
      ->check(CLI::ExistingDirectory)
      ->group("Source");
  verb.add_option("--caption-lines", flags.caption_lines,
                  "Folder: how much of a .txt is the caption")
      ->check(CLI::IsMember({"all", "first"}))
      ->capture_default_str()
      ->group("Source");
  verb.add_option("--question", source.question,
                  "What captions answer, for chat templates [nothing]")
      ->group("Source");
  verb.add_option("--ids", flags.pack.ids, "File of keys, one a line: pack only these records")
      ->check(CLI::ExistingFile)
      ->group("Source");
  verb.add_option("--exclude", flags.pack.exclude, "File of keys, one a line: pack all but these")
      ->check(CLI::ExistingFile)
      ->group("Source");
}

void add_text_options(CLI::App& verb, Flags& flags) {
  verb.add_option("--tokenizer", flags.pack.tokenizer, "SentencePiece model or tokenizer.json")
      ->required()
      ->check(CLI::ExistingFile)
      ->group("Text");
  verb.add_option("--template", flags.pack.chat_template,
                  fmt::format("Chat template: {}", fmt::join(mm::text::template_names(), ", ")))
      ->capture_default_str()
      ->group("Text");
  verb.add_option("--max-length", flags.pack.max_length,
                  "Tokens of a sample at most, pictures included")
      ->capture_default_str()
      ->group("Text");
  verb.add_flag("--text-only", flags.pack.text_only, "Drop pictures and their marks")
      ->group("Text");
}

void add_picture_options(CLI::App& verb, Flags& flags) {
  PictureOptions& pictures = flags.pack.pictures;
  const auto add = [&](const char* name, auto& value, const char* help) {
    verb.add_option(name, value, help)->capture_default_str()->group("Pictures");
  };
  add("--image-side", pictures.side, "Pixels of the square that is stored");
  add("--patch", pictures.patch, "Pixels; a picture takes (side / patch)^2 tokens");
  add("--geometry", pictures.geometry, "crop (CLIP), pad (LLaVA-1.5) or squash (SigLIP)");
  add("--filter", pictures.filter,
      "nearest, box, bilinear, bicubic or lanczos, as Pillow computes them");
  add("--storage", pictures.storage, "raw (exact) or jpeg (smaller)");
  add("--jpeg-quality", pictures.jpeg_quality, "1 to 100");
  add("--max-pixels", pictures.limits.max_pixels, "A header that claims more is refused");
}

void add_run_options(CLI::App& verb, Flags& flags) {
  verb.add_option("--out", flags.run.output, "Directory of the data set; must not exist")
      ->required();
  verb.add_option("--bad-limit", flags.bad_percent, "Percent of samples that may be bad")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  verb.add_option("--shard-size", flags.shard_mib, "MiB of a shard, about")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  verb.add_option("--threads", flags.run.threads, "Threads; 0: all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb.add_flag("--json", flags.json, "Print one JSON object instead of text");
  verb.add_flag("--quiet", flags.quiet, "No progress on stderr");
}

void print(const PackResult& result, const Flags& flags) {
  const DatasetCounts& n = result.manifest.counts;
  const std::string out = flags.run.output.string();
  if (flags.json) {
    mm::Json json = {{"schema", 1}, {"out", out}, {"was_there", result.was_there}};
    json["counts"] = to_json(result.manifest)["counts"];
    json["units"] = result.units;
    json["units_reused"] = result.units_reused;
    fmt::print("{}\n", json.dump(2));
    return;
  }
  if (result.was_there) fmt::print("{} is there already, packed with the same options\n", out);
  fmt::print(
      "{}: {} samples, {} pictures, {} tokens ({} trained on), {} shards; {} bad, {} skipped\n",
      out, n.samples, n.images, n.tokens, n.targets, result.manifest.shards.size(), n.bad,
      n.skipped);
}

int run_pack(Flags& flags) {
  SourceOptions& source = flags.pack.source;
  source.kind = flags.source_kind == "auto" ? sniff_source(source.path)
                                            : *source_kind_from_name(flags.source_kind);
  source.caption_lines = flags.caption_lines == "first" ? CaptionLines::kFirst : CaptionLines::kAll;
  flags.pack.shard_bytes = static_cast<uint64_t>(flags.shard_mib * (1 << 20));
  flags.run.bad_limit = flags.bad_percent / 100;
  mm::Progress progress({.label = "pack", .unit = "rows", .quiet = flags.quiet});
  flags.run.on_rows = [&](int64_t rows) { progress.add(rows); };
  const PackResult result = pack_dataset(flags.pack, flags.run);
  if (!result.was_there) progress.finish();
  print(result, flags);
  return static_cast<int>(mm::ExitCode::kDone);
}

}  // namespace

void add_pack(CLI::App& app, Body& body) {
  auto* verb = app.add_subcommand("pack", "Pack image-text data into a data set");
  auto flags = std::make_shared<Flags>();
  add_source_options(*verb, *flags);
  add_text_options(*verb, *flags);
  add_picture_options(*verb, *flags);
  add_run_options(*verb, *flags);
  verb->footer(kExamples);
  verb->callback([flags, &body] { body = [flags] { return run_pack(*flags); }; });
}

}  // namespace mmshard
