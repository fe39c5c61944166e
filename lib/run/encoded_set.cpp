#include "lib/run/encoded_set.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"

namespace mm::run {
namespace {

/// Rows [begin, end) of a tensor along its first dimension, as fp32.
at::Tensor rows_of(const ckpt::SafetensorsFile& file, const ckpt::TensorEntry& entry,
                   uint64_t begin, uint64_t end) {
  at::ScalarType type = at::kFloat;
  if (entry.dtype == ckpt::DType::kBF16) type = at::kBFloat16;
  if (entry.dtype == ckpt::DType::kF16) type = at::kHalf;
  std::vector<int64_t> shape(entry.shape.begin(), entry.shape.end());
  const uint64_t row_bytes = entry.size_bytes() / entry.shape[0];
  shape[0] = static_cast<int64_t>(end - begin);
  at::Tensor out = at::empty(shape, at::TensorOptions().dtype(type));
  MM_CHECK(out.nbytes() == (end - begin) * row_bytes, "{} rows of {} bytes in {}", end - begin,
           row_bytes, out.nbytes());
  if (out.numel() > 0)
    file.read_range(entry, begin * row_bytes,
                    {static_cast<std::byte*>(out.mutable_data_ptr()), out.nbytes()});
  return out.to(at::kFloat);
}

std::vector<int64_t> integers(const ckpt::SafetensorsFile& file, const std::string& name) {
  const ckpt::TensorEntry& entry = file.at(name);
  if (entry.dtype != ckpt::DType::kI64 || entry.shape.size() != 1)
    throw DataError("{}: {} is no list of integers", file.path().string(), name);
  std::vector<int64_t> values(entry.shape[0]);
  file.read(entry, std::as_writable_bytes(std::span(values)));
  return values;
}

const ckpt::TensorEntry& floats(const ckpt::SafetensorsFile& file, const std::string& name,
                                size_t dimensions, uint64_t rows) {
  const ckpt::TensorEntry& entry = file.at(name);
  const bool real = entry.dtype == ckpt::DType::kF32 || entry.dtype == ckpt::DType::kBF16 ||
                    entry.dtype == ckpt::DType::kF16;
  if (!real || entry.shape.size() != dimensions || entry.shape[0] != rows)
    throw DataError("{}: {} has shape {}, expected {} rows in {} dimensions", file.path().string(),
                    name, ckpt::shape_text(entry.shape), rows, dimensions);
  return entry;
}

void require_same(const char* what, const std::string& stored, const std::string& given) {
  if (stored == given) return;
  throw DataError(
      "stored by {} {}, this run has {}; encode the set again (mmshard encode), or use the model "
      "that made it",
      what, stored.empty() ? "none" : stored, given);
}

}  // namespace

std::unique_ptr<EncodedSet> EncodedSet::open(const std::filesystem::path& directory,
                                             const data::Dataset& dataset) {
  EncodedManifest manifest = read_encoded_manifest(directory);
  const std::string where = directory.string();
  if (manifest.settings.dataset != dataset.fingerprint() ||
      manifest.settings.rows != dataset.rows())
    throw DataError("{}: made of another data set than {} (its manifest was {}, this is {})", where,
                    dataset.directory().string(), manifest.settings.dataset, dataset.fingerprint());
  if (manifest.settings.preprocessing !=
      preprocessing_hash(dataset.manifest(), manifest.settings.text_writing))
    throw DataError("{}: {} prepares pictures or texts otherwise", where,
                    dataset.directory().string());
  std::unique_ptr<EncodedSet> set(new EncodedSet(manifest.settings));
  for (uint64_t unit = 0; unit < manifest.units.size(); ++unit) {
    const std::filesystem::path path = directory / manifest.units[unit].file;
    const uint64_t first = unit * kUnitRows;
    set->add_unit(path, first, std::min(kUnitRows, manifest.settings.rows - first));
    if (set->files_.back()->file_bytes() != manifest.units[unit].bytes)
      throw DataError("{}: {} bytes, the manifest says {}", path.string(),
                      set->files_.back()->file_bytes(), manifest.units[unit].bytes);
  }
  return set;
}

void EncodedSet::add_unit(const std::filesystem::path& path, uint64_t first, uint64_t count) {
  files_.push_back(std::make_unique<ckpt::SafetensorsFile>(ckpt::SafetensorsFile::open(path)));
  if (!settings_.vae.empty()) place_latents(*files_.back(), first, count);
  if (!settings_.text.empty()) place_captions(*files_.back(), count);
}

void EncodedSet::place_latents(const ckpt::SafetensorsFile& file, uint64_t first, uint64_t count) {
  latents_.resize(first + count);
  uint64_t placed = 0;
  const auto channels = static_cast<uint64_t>(settings_.channels) * (settings_.mean_only ? 1 : 2);
  for (const ckpt::TensorEntry& entry : file.tensors()) {
    if (!entry.name.starts_with("latents.") || entry.name.ends_with(".rows")) continue;
    const std::vector<int64_t> rows = integers(file, entry.name + ".rows");
    if (floats(file, entry.name, 4, rows.size()).shape[1] != channels)
      throw DataError("{}: {} has {} channels, expected {}", file.path().string(), entry.name,
                      entry.shape[1], channels);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<uint64_t>(rows[i]);
      if (row < first || row >= first + count || latents_[row].entry != nullptr)
        throw DataError("{}: {} has row {} twice or out of place", file.path().string(), entry.name,
                        rows[i]);
      latents_[row] = {&entry, i};
      ++placed;
    }
  }
  if (placed != count)
    throw DataError("{}: latents of {} rows, expected {}", file.path().string(), placed, count);
}

void EncodedSet::place_captions(const ckpt::SafetensorsFile& file, uint64_t count) {
  const std::vector<int64_t> ends = integers(file, "captions.ends");
  if (ends.size() != count || !std::ranges::is_sorted(ends) || (count > 0 && ends[0] < 0))
    throw DataError("{}: captions.ends does not hold {} ascending ends", file.path().string(),
                    count);
  const auto tokens = static_cast<uint64_t>(ends.empty() ? 0 : ends.back());
  const auto width = static_cast<uint64_t>(settings_.text_width);
  if (floats(file, "captions", 2, tokens).shape[1] != width ||
      floats(file, "pooled", 2, count).shape[1] != static_cast<uint64_t>(settings_.pooled_width))
    throw DataError("{}: captions are not {} wide", file.path().string(), width);
  caption_ends_.insert(caption_ends_.end(), ends.begin(), ends.end());
}

const ckpt::SafetensorsFile& EncodedSet::file_of(uint64_t row) const {
  MM_CHECK(row < settings_.rows, "row {} of {}", row, settings_.rows);
  return *files_[row / kUnitRows];
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

at::Tensor EncodedSet::latents(uint64_t row, const at::Tensor& noise) const {
  MM_CHECK(!settings_.vae.empty(), "this encoded set has no latents");
  const ckpt::SafetensorsFile& file = file_of(row);
  const Place& place = latents_[row];
  const at::Tensor stored = rows_of(file, *place.entry, place.index, place.index + 1)[0];
  at::Tensor z = stored.narrow(0, 0, settings_.channels);
  if (!settings_.mean_only && noise.defined())
    z = z + stored.narrow(0, settings_.channels, settings_.channels) * noise.to(at::kFloat);
  return (z - settings_.shift) * settings_.scale;
}

at::Tensor EncodedSet::caption(uint64_t row) const {
  MM_CHECK(!settings_.text.empty(), "this encoded set has no captions");
  const ckpt::SafetensorsFile& file = file_of(row);
  const int64_t begin = row % kUnitRows == 0 ? 0 : caption_ends_[row - 1];
  return rows_of(file, file.at("captions"), static_cast<uint64_t>(begin),
                 static_cast<uint64_t>(caption_ends_[row]));
}

at::Tensor EncodedSet::pooled(uint64_t row) const {
  MM_CHECK(!settings_.text.empty(), "this encoded set has no captions");
  const ckpt::SafetensorsFile& file = file_of(row);
  return rows_of(file, file.at("pooled"), row % kUnitRows, row % kUnitRows + 1)[0];
}

}  // namespace mm::run
