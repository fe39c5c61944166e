#include "lib/run/encode_dataset.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/ckpt/safetensors.h"
#include "lib/run/encoded_unit.h"

namespace fs = std::filesystem;

namespace mm::run {
namespace {

constexpr const char* kSettings = "settings.json";

EncodedSettings settings_of(const EncodeOptions& options, const data::Dataset& dataset,
                            const Encoders& encoders) {
  EncodedSettings s{.dataset = dataset.fingerprint(),
                    .rows = dataset.rows(),
                    .mean_only = options.mean_only,
                    .dtype = options.dtype};
  if (encoders.vae) {
    const model::VaeConfig& config = encoders.vae->config();
    s.vae = model_hash(options.encoders.vae);
    s.scale = config.scale;
    s.shift = config.shift;
    s.channels = static_cast<int32_t>(config.latent_channels);
    s.factor = static_cast<int32_t>(config.factor());
  }
  if (encoders.text) {
    for (const fs::path& text : options.encoders.text) s.text_models.push_back(model_hash(text));
    s.text_padding = static_cast<int32_t>(options.encoders.text_padding);
    s.text = text_models_hash(s.text_models, s.text_padding);
    const CaptionShape& shape = encoders.text->shape();
    s.text_width = static_cast<int32_t>(shape.width);
    s.pooled_width = static_cast<int32_t>(shape.pooled_width);
    s.text_length = static_cast<int32_t>(shape.length);
    s.text_shares = shape.shares;
    s.text_writing = encoders.text->writing();
  }
  s.preprocessing = preprocessing_hash(dataset.manifest(), s.text_writing);
  return s;
}

void check(const EncodeOptions& o) {
  constexpr std::array kTypes{"fp32", "bf16", "fp16"};
  if (std::ranges::find(kTypes, o.dtype) == kTypes.end())
    throw UsageError("dtype {}: expected fp32, bf16 or fp16", o.dtype);
  if (o.encoders.empty())
    throw UsageError("nothing to encode with: give --vae, --text-encoder or both");
  if (o.world < 1 || o.rank < 0 || o.rank >= o.world)
    throw UsageError("rank {} of {}", o.rank, o.world);
}

/// All ranks write the same text; another one is of another call.
void agree_on(const fs::path& partial, const std::string& text) {
  fs::create_directories(partial);
  const fs::path path = partial / kSettings;
  if (!fs::exists(path)) write_file_atomic(path, text);
  if (read_file(path) != text)
    throw UsageError("{} was begun with other settings; remove it, or give another output",
                     partial.string());
}

/// Whether the unit is there. Files appear whole (law 4); one of other settings is an error.
bool is_present(const fs::path& path, const std::string& hash) {
  if (!fs::exists(path)) return false;
  const auto file = ckpt::SafetensorsFile::open(path);
  const auto at = file.metadata().find(kSettingsKey);
  if (at == file.metadata().end() || at->second != hash)
    throw DataError("{}: made with other settings; remove it", path.string());
  return true;
}

/// Of a unit that is there.
uint64_t absent_rows(const fs::path& unit) {
  const auto file = ckpt::SafetensorsFile::open(unit);
  const ckpt::TensorEntry* absent = file.find("absent");
  return absent == nullptr || absent->shape.empty() ? 0 : absent->shape[0];
}

void check_absent(uint64_t absent, const EncodeOptions& options, uint64_t rows) {
  if (static_cast<double>(absent) <= options.bad_limit * static_cast<double>(rows)) return;
  throw DataError(
      "{}: {} of {} rows could not be read, more than the limit of {:g} % (--bad-limit); mmshard "
      "verify {} lists them, and mmshard pack --exclude makes a set without them",
      options.dataset.string(), absent, rows, 100 * options.bad_limit, options.dataset.string());
}

/// A set of before captions' writing was recorded is whole without it.
bool is_complete(const fs::path& output, const EncodedSettings& settings,
                 const data::DatasetManifest& dataset) {
  if (!fs::exists(output)) return false;
  const EncodedSettings there = read_encoded_manifest(output).settings;
  const EncodedSettings here =
      there.text_writing.empty() ? without_writing(settings, dataset) : settings;
  if (to_json(there) != to_json(here))
    throw UsageError("{} exists with other settings; give another output", output.string());
  return true;
}

/// Writes the manifest and renames, unless too many rows are absent. Of several ranks that come
/// here one wins, with equal bytes.
void finish(const fs::path& partial, const EncodeOptions& options,
            const EncodedSettings& settings) {
  try {
    EncodedManifest manifest{.settings = settings};
    for (uint64_t unit = 0; unit < unit_count(settings.rows); ++unit) {
      manifest.units.push_back(data::describe_file(partial, unit_name(unit)));
      manifest.absent += absent_rows(partial / unit_name(unit));
    }
    check_absent(manifest.absent, options, settings.rows);
    write_file_atomic(partial / "manifest.json", to_json(manifest).dump(2) + "\n");
    fs::remove(partial / kSettings);
    fsync_directory(partial);
    fs::rename(partial, options.output);
    fsync_directory(fs::absolute(options.output).parent_path());
  } catch (const IoError&) {
    if (!fs::exists(options.output / "manifest.json")) throw;
  } catch (const fs::filesystem_error& error) {
    if (!fs::exists(options.output / "manifest.json"))
      throw IoError("{}: {}", options.output.string(), error.what());
  }
}

/// This rank's units that are not there yet.
void make_units(const EncodeOptions& options, const data::Dataset& dataset,
                const Encoders& encoders, const EncodedSettings& settings, EncodeResult& result) {
  const std::string hash = settings_hash(settings);
  uint64_t absent = 0;
  for (auto unit = static_cast<uint64_t>(options.rank); unit < result.units;
       unit += static_cast<uint64_t>(options.world)) {
    const fs::path path = options.output.string() + ".partial/" + unit_name(unit);
    if (is_present(path, hash)) {
      ++result.present;
      continue;
    }
    const uint64_t first = unit * kUnitRows;
    const std::vector<AbsentRow> unread =
        encode_unit({dataset, encoders, settings, first, std::min(kUnitRows, settings.rows - first),
                     options.threads},
                    path, {{kSettingsKey, hash}, {kUnitKey, std::to_string(unit)}});
    for (const AbsentRow& row : unread)
      if (options.on_absent) options.on_absent(row);
    absent += unread.size();
    check_absent(absent, options, settings.rows);
    ++result.made;
    if (options.on_unit) options.on_unit(result.made + result.present, result.units);
  }
}

}  // namespace

EncodeResult encode_dataset(const EncodeOptions& options) {
  check(options);
  const auto dataset = data::Dataset::open(options.dataset);
  const auto encoders = load_encoders(
      options.encoders, dataset->directory() / dataset->manifest().tokenizer.file.file);
  const EncodedSettings settings = settings_of(options, *dataset, *encoders);
  EncodeResult result{.units = unit_count(settings.rows)};
  if (is_complete(options.output, settings, dataset->manifest())) {
    result.present = result.units;
    result.complete = true;
    result.absent = read_encoded_manifest(options.output).absent;
    return result;
  }
  const fs::path partial = options.output.string() + ".partial";
  agree_on(partial, settings_text(settings));
  make_units(options, *dataset, *encoders, settings, result);
  const std::string hash = settings_hash(settings);
  bool all = true;
  for (uint64_t unit = 0; unit < result.units; ++unit)
    all = all && (fs::exists(options.output) || is_present(partial / unit_name(unit), hash));
  if (all) finish(partial, options, settings);
  result.complete = is_complete(options.output, settings, dataset->manifest());
  if (result.complete) result.absent = read_encoded_manifest(options.output).absent;
  return result;
}

}  // namespace mm::run
