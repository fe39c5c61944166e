#include "lib/run/encoded_set.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/thread_pool.h"

namespace mm::run {
namespace {

/// Headers are read by so many at once: what takes time is a network's round trips.
constexpr size_t kOpeningThreads = 8;

void require_same(const char* what, const std::string& stored, const std::string& given) {
  if (stored == given) return;
  throw DataError(
      "stored by {} {}, this run has {}; encode the set again (mmshard encode), or use the model "
      "that made it",
      what, stored.empty() ? "none" : stored, given);
}

}  // namespace

EncodedSet::EncodedSet(EncodedSettings settings, size_t open_units)
    : settings_(std::move(settings)),
      files_(
          [this](uint64_t unit) {
            return std::make_shared<const File>(File::open_read(units_[unit].path()));
          },
          open_units) {}

std::unique_ptr<EncodedSet> EncodedSet::open(const std::filesystem::path& directory,
                                             const data::Dataset& dataset, size_t open_units) {
  const EncodedManifest manifest = read_encoded_manifest(directory);
  const std::string where = directory.string();
  if (manifest.settings.dataset != dataset.fingerprint() ||
      manifest.settings.rows != dataset.rows())
    throw DataError("{}: made of another data set than {} (its manifest was {}, this is {})", where,
                    dataset.directory().string(), manifest.settings.dataset, dataset.fingerprint());
  if (manifest.settings.preprocessing !=
      preprocessing_hash(dataset.manifest(), manifest.settings.text_writing))
    throw DataError("{}: {} prepares pictures or texts otherwise", where,
                    dataset.directory().string());
  std::unique_ptr<EncodedSet> set(new EncodedSet(manifest.settings, open_units));
  set->directory_ = directory;
  set->fingerprint_ = xxh3_128_hex(read_file(directory / "manifest.json"));
  set->units_.resize(manifest.units.size());
  const std::string hash = settings_hash(manifest.settings);
  const std::vector<data::SampleSize> sizes = dataset.sizes();
  const auto threads = static_cast<int>(std::min(kOpeningThreads, open_units));
  parallel_for(manifest.units.size(), threads, [&](size_t i) {
    EncodedUnit::Expected expected{
        .settings = set->settings_, .hash = hash, .number = i, .bytes = manifest.units[i].bytes};
    expected.sizes = std::span(sizes).subspan(expected.first(), expected.rows());
    set->units_[i] = EncodedUnit::open(directory / manifest.units[i].file, expected);
  });
  return set;
}

const EncodedUnit& EncodedSet::unit_of(uint64_t row) const {
  MM_CHECK(row < settings_.rows, "row {} of {}", row, settings_.rows);
  return units_[row / kUnitRows];
}

bool EncodedSet::has(uint64_t row) const { return unit_of(row).has(row % kUnitRows); }

uint64_t EncodedSet::absent_rows() const {
  uint64_t rows = 0;
  for (const EncodedUnit& unit : units_) rows += unit.absent_rows();
  return rows;
}

bool EncodedSet::made_of(uint64_t row, std::span<const int32_t> tokens) const {
  return unit_of(row).made_of(*files_.get(row / kUnitRows), row % kUnitRows, tokens);
}

void EncodedSet::require_vae(const std::string& hash) const {
  require_same("the VAE", settings_.vae, hash);
}

void EncodedSet::require_text(const std::string& hash,
                              const std::vector<CaptionWriting>& writing) const {
  require_same("the text encoder", settings_.text, hash);
  const std::string difference = writing_difference(settings_.text_writing, writing);
  if (!difference.empty())
    throw DataError("captions were stored otherwise: {}; encode the set again (mmshard encode)",
                    difference);
}

void EncodedSet::require_scaling(double scale, double shift) const {
  if (settings_.scale == scale && settings_.shift == shift) return;
  throw DataError(
      "the encoded set's manifest.json has scaling_factor {} and shift_factor {}, the VAE's "
      "config.json {} and {}; encode the set again (mmshard encode)",
      settings_.scale, settings_.shift, scale, shift);
}

at::Tensor EncodedSet::read(uint64_t row, UnitPart part) const {
  return unit_of(row).read(*files_.get(row / kUnitRows), row % kUnitRows, part);
}

at::Tensor EncodedSet::latents(uint64_t row, const at::Tensor& noise) const {
  MM_CHECK(!settings_.vae.empty(), "this encoded set has no latents");
  const at::Tensor stored = read(row, UnitPart::kLatents);
  at::Tensor z = stored.narrow(0, 0, settings_.channels);
  if (!settings_.mean_only && noise.defined())
    z = z + stored.narrow(0, settings_.channels, settings_.channels) * noise.to(at::kFloat);
  return (z - settings_.shift) * settings_.scale;
}

at::Tensor EncodedSet::caption(uint64_t row) const {
  MM_CHECK(!settings_.text.empty(), "this encoded set has no captions");
  return read(row, UnitPart::kCaption);
}

at::Tensor EncodedSet::pooled(uint64_t row) const {
  MM_CHECK(!settings_.text.empty(), "this encoded set has no captions");
  return read(row, UnitPart::kPooled);
}

}  // namespace mm::run
