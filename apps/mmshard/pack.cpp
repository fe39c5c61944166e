#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "apps/mmshard/verbs.h"
#include "lib/base/error.h"
#include "lib/base/exit_code.h"
#include "lib/base/file.h"
#include "lib/base/progress.h"
#include "lib/data/bad_sample_ledger.h"
#include "lib/data/bucketing.h"
#include "lib/data/duplicates.h"
#include "lib/data/pack_dataset.h"
#include "lib/data/source_flags.h"
#include "lib/text/chat_template.h"
#include "lib/text/tiktoken.h"

namespace mmshard {
namespace {

using namespace mm::data;

constexpr const char* kExamples =
    R"(Formats (told from the content; docs/formats.md says what each takes):
  folder        pictures, each with a .txt or .caption of the same stem beside it, or metadata.jsonl / metadata.csv
  jsonl         one object a line: a caption, LLaVA conversations, OpenAI messages, MMC4 or OBELICS documents
  llava-json    one array of such objects
  internvl-meta data sets with root, annotation and repeat_time
  webdataset    tar, .tar.gz, .tar.zst; also as a pattern: 'data/{00000..00031}.tar'
  csv, tsv      a table with a header line
  parquet       tables of Hugging Face data sets (scripts/fetch-arrow.sh)
  idx           NAME-images-idx3-ubyte with NAME-labels-idx1-ubyte beside it, .gz too (Fashion-MNIST)
  mixture       a TOML file of [[source]] with path and weight, or --source PATH --weight W twice or more
Bad samples are listed in DIR/ledger.jsonl; more than --bad-limit of them is an error (65). Killed and started again
with the same options, pack goes on where it was; a finished DIR is left as it is. Tasks of one job (srun, or RANK and
WORLD_SIZE) and any further pack of the same options share the work; whichever comes last writes the manifest.

Examples:
  mmshard pack photos/ --out sets/photos --tokenizer tokenizer.model --image-side 224 --patch 16 --caption-lines first
  mmshard pack --source llava.json --weight 3 --source 'web/{000..099}.tar' --weight 1 --out sets/mix --tokenizer tokenizer.model
  mmshard pack llava.json --out sets/llava --tokenizer tokenizer.model --image-root coco/ --template vicuna_v1 --storage jpeg
  mmshard pack photos/ --out sets/dit --tokenizer t5.json --max-length 120 --geometry buckets --buckets pixart-512,pixart-1024
  mmshard pack train-images-idx3-ubyte.gz --out sets/fashion --labels label --geometry buckets --buckets 28x28
  srun -n 8 mmshard pack llava.json --out /store/llava --tokenizer tokenizer.model)";

struct Flags {
  PackOptions pack;
  PackRun run;
  SourceFlags source;
  std::string caption_lines = "all", missing_marks = "refuse";
  bool follow_links = false;
  double bad_percent = 1;
  double shard_mib = 256;
  bool json = false, quiet = false;
};

void add_caption_options(CLI::App& verb, Flags& flags) {
  const std::string group = "Source";
  verb.add_option("--caption-lines", flags.caption_lines,
                  "Folder: how much of a .txt is the caption")
      ->check(CLI::IsMember({"all", "first"}))
      ->capture_default_str()
      ->group(group);
  verb.add_flag("--kohya", flags.source.common.kohya,
                "Folder: 10_name repeats 10 times, first line, name for a missing caption")
      ->group(group);
  verb.add_option("--question", flags.source.common.question,
                  "What captions answer, for chat templates [nothing]")
      ->group(group);
  verb.add_option("--missing-marks", flags.missing_marks,
                  "Pictures in a conversation without <image>: refuse the row, or prepend marks")
      ->check(CLI::IsMember({"refuse", "prepend"}))
      ->capture_default_str()
      ->group(group);
  verb.add_flag("--follow-links", flags.follow_links, "Links may lead out of the image root")
      ->group(group);
  verb.add_option("--labels", flags.source.common.labels,
                  "buckets: class-conditional; the class is named by the picture's \"folder\", "
                  "this column or key, or the idx labels")
      ->group(group);
  verb.add_option("--class-names", flags.pack.class_names,
                  "File of class names, one a line, by id [those in the source]")
      ->check(CLI::ExistingFile)
      ->group(group);
  verb.add_option("--ids", flags.pack.ids, "File of keys, one a line: pack only these records")
      ->check(CLI::ExistingFile)
      ->group(group);
  verb.add_option("--exclude", flags.pack.exclude, "File of keys, one a line: pack all but these")
      ->check(CLI::ExistingFile)
      ->group(group);
}

void add_source_options(CLI::App& verb, Flags& flags) {
  SourceFlags& source = flags.source;
  const std::string group = "Source";
  verb.add_option("source,--source", source.paths,
                  "Folder, file or pattern to pack; several make a mixture")
      ->required()
      ->allow_extra_args(false)
      ->group(group);
  verb.add_option("--weight", source.weights, "Share of the samples, one for each source")
      ->allow_extra_args(false)
      ->group(group);
  verb.add_option("--repeat", source.repeats, "Passes over each source [1]")
      ->allow_extra_args(false)
      ->group(group);
  std::vector<std::string> formats = source_format_names();
  formats.insert(formats.begin(), "auto");
  verb.add_option("--format", source.formats,
                  fmt::format("Format, one for all or one each: {}", fmt::join(formats, ", ")))
      ->check(CLI::IsMember(formats))
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->group(group);
  verb.add_option(
          "--image-root", source.image_roots,
          "Folder that picture paths start from, one for all or one each [the source's own]")
      ->allow_extra_args(false)
      ->check(CLI::ExistingDirectory)
      ->group(group);
  add_caption_options(verb, flags);
}

void add_text_options(CLI::App& verb, Flags& flags) {
  verb.add_option(
          "--tokenizer", flags.pack.tokenizer,
          "SentencePiece model, tokenizer.json, vocab.json (merges.txt beside it), tiktoken "
          "file or CLIP's merges, or a model's directory with one; not with --labels")
      ->check(CLI::ExistingPath)
      ->group("Text");
  verb.add_option("--tokenizer-scheme", flags.pack.tokenizer_scheme,
                  fmt::format("Pattern and marks of a tiktoken file: {} [by its size]",
                              fmt::join(mm::text::tiktoken_schemes(), ", ")))
      ->check(CLI::IsMember(mm::text::tiktoken_schemes()))
      ->group("Text");
  verb.add_option("--template", flags.pack.chat_template,
                  fmt::format("Chat template: {}, or a file NAME.toml",
                              fmt::join(mm::text::template_names(), ", ")))
      ->capture_default_str()
      ->group("Text");
  verb.add_option("--max-length", flags.pack.max_length,
                  "Tokens of a sample at most, pictures included; buckets: of a caption")
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
  add("--image-side", pictures.side, "Pixels of the square (of a tile) that is stored");
  add("--patch", pictures.patch, "Pixels; a picture takes (side / patch / merge)^2 tokens");
  add("--merge", pictures.merge, "Patches along a side that make one token (internvl, qwen: 2)");
  add("--geometry", pictures.geometry,
      "crop (CLIP), pad (LLaVA-1.5), squash (SigLIP), adm (DiT); anyres (LLaVA-NeXT), internvl, "
      "qwen, bucket (PixArt); buckets: for diffusion models, with captions or --labels");
  add("--filter", pictures.filter,
      "nearest, box, bilinear, bicubic or lanczos, as Pillow computes them");
  add("--pass-order", pictures.pass_order,
      "Resize across first or down first as this Pillow does: pillow12 or pillow13 (to the bit)");
  add("--store,--storage", pictures.storage,
      "raw (exact), jpeg, webp, webp-lossless, or source: the file itself where no pixel changes, "
      "else raw");
  add("--jpeg-quality", pictures.jpeg_quality, "1 to 100");
  verb.add_flag("--jpeg-optimize", pictures.jpeg_optimize,
                "Huffman tables made for each picture: smaller files, slower to pack")
      ->group("Pictures");
  add("--webp-quality", pictures.webp_quality, "0 to 100");
  add("--alpha", pictures.alpha, "Behind transparent pixels: white, black, #rrggbb; or drop");
  add("--orient", pictures.orient, "Orientation tags: apply or ignore");
  add("--max-pixels", pictures.limits.max_pixels, "A header that claims more is refused");
  add("--max-side", pictures.limits.max_side, "Pixels of the longer side at most");
  add("--min-side", pictures.limits.min_side, "Pixels of the shorter side at least");
  add("--max-aspect", pictures.limits.max_aspect, "Longer / shorter side at most; 0: any");
  add("--grids", pictures.grids, "anyres: rows x columns of tiles to choose from");
  add("--max-grid-tiles", pictures.max_grid_tiles,
      "anyres: features of more tiles are scaled down (OneVision: 9); 0: never");
  add("--buckets", pictures.buckets,
      "bucket, buckets: width x height to choose from, in pixels; buckets: also sdxl, pixart-256, "
      "pixart-512, pixart-1024");
  add("--bucket-area", pictures.bucket_area,
      "buckets: derive them for these areas (1024x1024 or pixels)");
  add("--bucket-multiple", pictures.bucket_multiple, "buckets: derived sides are multiples");
  add("--bucket-ratio", pictures.bucket_ratio, "buckets: derived longer / shorter side at most");
  add("--min-tiles", pictures.min_tiles, "internvl: tiles at least");
  add("--max-tiles", pictures.max_tiles, "internvl: tiles at most, without the whole");
  add("--thumbnail", pictures.thumbnail, "internvl: one tile more shows the whole");
  add("--min-prepared-pixels", pictures.min_pixels, "qwen: of the prepared picture, at least");
  add("--max-prepared-pixels", pictures.max_pixels, "qwen: of the prepared picture, at most");
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
  verb.add_option("--for", flags.pack.for_plan,
                  "Plan file of a set packed with the same options: shards in its order, so that a "
                  "pack is one read [by length]")
      ->check(CLI::ExistingFile);
  verb.add_option("--threads", flags.run.threads, "Threads; 0: all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb.add_flag("--json", flags.json, "Print one JSON object instead of text");
  verb.add_flag("--quiet", flags.quiet, "No progress on stderr");
}

void print(const PackResult& result, const Flags& flags) {
  const DatasetCounts& n = result.manifest.counts;
  const std::string out = flags.run.output.string();
  const auto ledger = read_ledger(flags.run.output / result.manifest.ledger.file);
  if (flags.json) {
    mm::Json json = {{"schema", 1}, {"out", out}, {"was_there", result.was_there}};
    json["counts"] = to_json(result.manifest)["counts"];
    if (!result.manifest.bucketing.is_null()) json["bucketing"] = result.manifest.bucketing;
    if (!result.manifest.duplicates.is_null()) json["duplicates"] = result.manifest.duplicates;
    json["units"] = result.units;
    json["units_reused"] = result.units_reused;
    json["by_other_task"] = result.by_other;
    json["bad_kinds"] = count_kinds(ledger, Fate::kBad);
    json["skipped_kinds"] = count_kinds(ledger, Fate::kSkipped);
    json["warned_kinds"] = count_kinds(ledger, Fate::kWarned);
    fmt::print("{}\n", json.dump(2));
    return;
  }
  if (result.was_there) fmt::print("{} is there already, packed with the same options\n", out);
  const std::string trained =
      result.manifest.bucketing.is_null() ? fmt::format(" ({} trained on)", n.targets) : "";
  fmt::print("{}: {} samples, {} pictures, {} tokens{}, {} shards; {} bad, {} skipped\n", out,
             n.samples, n.images, n.tokens, trained, result.manifest.shards.size(), n.bad,
             n.skipped);
  if (!result.manifest.bucketing.is_null())
    fmt::print("  {}\n", bucketing_line(bucketing_from_json(result.manifest.bucketing, out)));
  if (const auto line = duplicates_line(result.manifest.duplicates, out); !line.empty())
    fmt::print("{}\n", line);
  for (const auto& [word, fate] : {std::pair{"bad", Fate::kBad},
                                   {"skipped", Fate::kSkipped},
                                   {"packed with a warning", Fate::kWarned}}) {
    if (const auto kinds = describe_kinds(count_kinds(ledger, fate)); !kinds.empty())
      fmt::print("  {}: {}\n", word, kinds);
  }
}

int run_pack(Flags& flags) {
  SourceOptions& common = flags.source.common;
  common.caption_lines = flags.caption_lines == "first" ? CaptionLines::kFirst : CaptionLines::kAll;
  common.missing_marks =
      flags.missing_marks == "prepend" ? MissingMarks::kPrepend : MissingMarks::kRefuse;
  common.links = flags.follow_links ? Links::kAnywhere : Links::kInsideRoot;
  flags.pack.source = source_from_flags(flags.source);
  if (std::filesystem::path(flags.pack.chat_template).extension() == ".toml") {
    const std::string definition = mm::read_file(flags.pack.chat_template);
    mm::text::parse_template(definition, flags.pack.chat_template);
    flags.pack.chat_template = definition;
  }
  flags.pack.shard_bytes = static_cast<uint64_t>(flags.shard_mib * (1 << 20));
  flags.run.bad_limit = flags.bad_percent / 100;
  flags.run.share = read_task_share();
  const auto [task, tasks] = flags.run.share;
  const std::string label = tasks > 1 ? fmt::format("pack (task {} of {})", task, tasks) : "pack";
  mm::Progress progress({.label = label, .unit = "rows", .quiet = flags.quiet});
  flags.run.on_rows = [&](int64_t rows) { progress.add(rows); };
  flags.run.on_total = [&](int64_t rows) { progress.set_total((rows + tasks - 1) / tasks); };
  const PackResult result = pack_dataset(flags.pack, flags.run);
  if (!result.was_there) progress.finish();
  // One task of a job speaks for all: the one that wrote the manifest.
  if (!result.by_other || flags.json) print(result, flags);
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
