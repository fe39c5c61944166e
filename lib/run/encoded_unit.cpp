#include "lib/run/encoded_unit.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "lib/base/error.h"
#include "lib/base/hash.h"

namespace mm::run {
namespace {

constexpr std::string_view kLatents = "latents.", kRows = ".rows";
constexpr std::array<const char*, kUnitParts> kPartNames{"latents", "caption", "pooled vector",
                                                         "caption's ids"};

bool is_real(ckpt::DType type) {
  return type == ckpt::DType::kF32 || type == ckpt::DType::kBF16 || type == ckpt::DType::kF16;
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
  if (!is_real(entry.dtype) || entry.shape.size() != dimensions || entry.shape[0] != rows)
    throw DataError("{}: {} has shape {}, expected {} rows in {} dimensions", file.path().string(),
                    name, ckpt::shape_text(entry.shape), rows, dimensions);
  return entry;
}

/// Of one row along the first dimension; there may be no rows.
uint64_t row_bytes(const ckpt::TensorEntry& entry) {
  uint64_t bytes = static_cast<uint64_t>(ckpt::size_bits(entry.dtype)) / 8;
  for (size_t i = 1; i < entry.shape.size(); ++i) bytes *= entry.shape[i];
  return bytes;
}

/// H and W of "latents.HxW", in pixels.
std::pair<uint64_t, uint64_t> sides_of(const std::filesystem::path& path, std::string_view name) {
  const std::string_view sides = name.substr(kLatents.size());
  const char *at = sides.data(), *end = at + sides.size();
  uint64_t height = 0, width = 0;
  const auto first = std::from_chars(at, end, height);
  const bool cross = first.ec == std::errc() && first.ptr != end && *first.ptr == 'x';
  if (cross) {
    const auto second = std::from_chars(first.ptr + 1, end, width);
    if (second.ec == std::errc() && second.ptr == end) return {height, width};
  }
  throw DataError("{}: {} names no height and width", path.string(), name);
}

void check_metadata(const ckpt::SafetensorsFile& file, const EncodedUnit::Expected& expected) {
  const auto value = [&](const char* key, const std::string& def) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? def : found->second;
  };
  const std::string hash = value(kSettingsKey, "none"), number = std::to_string(expected.number);
  if (hash != expected.hash)
    throw DataError(
        "{}: made with other settings than manifest.json has (hash {}, expected {}); {}",
        file.path().string(), hash, expected.hash, mending(file.path()));
  if (value(kUnitKey, number) != number)
    throw DataError("{}: holds unit {} of the set, expected {}; {}", file.path().string(),
                    value(kUnitKey, number), number, mending(file.path()));
}

}  // namespace

std::string mending(const std::filesystem::path& unit) {
  const std::string set = unit.parent_path().string();
  return fmt::format(
      "mmshard verify {} lists what is damaged; rename it to {}.partial, remove {} there and call "
      "mmshard encode again, which makes it anew",
      set, set, unit.filename().string());
}

EncodedUnit EncodedUnit::open(const std::filesystem::path& path, const Expected& expected) {
  const auto file = ckpt::SafetensorsFile::open(path);
  if (expected.bytes != file.file_bytes())
    throw DataError("{}: {} bytes, the manifest says {}; {}", path.string(), file.file_bytes(),
                    expected.bytes, mending(path));
  EncodedUnit unit;
  unit.path_ = path;
  unit.first_ = expected.first();
  unit.data_start_ = file.data_start();
  unit.rows_.resize(expected.rows());
  unit.note_absent(file, expected);
  if (!expected.settings.vae.empty()) unit.place_latents(file, expected);
  if (!expected.settings.text.empty()) unit.place_captions(file, expected);
  unit.find_sums(file);
  check_metadata(file, expected);
  return unit;
}

uint64_t EncodedUnit::absent_rows() const {
  return static_cast<uint64_t>(std::ranges::count(rows_, true, &Row::absent));
}

void EncodedUnit::note_absent(const ckpt::SafetensorsFile& file, const Expected& expected) {
  if (file.find("absent") == nullptr) return;
  for (const int64_t row : integers(file, "absent")) {
    const uint64_t place = static_cast<uint64_t>(row) - expected.first();
    if (place >= rows_.size() || rows_[place].absent)
      throw DataError("{}: absent has row {} twice or out of place", path_.string(), row);
    rows_[place].absent = true;
  }
}

void EncodedUnit::place_latents(const ckpt::SafetensorsFile& file, const Expected& expected) {
  for (const ckpt::TensorEntry& entry : file.tensors()) {
    if (entry.name.starts_with(kLatents) && !entry.name.ends_with(kRows))
      place_group(file, entry, expected);
  }
  const auto placed = std::ranges::count_if(rows_, [](const Row& row) { return row.sizes >= 0; });
  if (static_cast<uint64_t>(placed) + absent_rows() != rows_.size())
    throw DataError("{}: latents of {} rows, expected {}", path_.string(), placed,
                    rows_.size() - absent_rows());
}

void EncodedUnit::place_group(const ckpt::SafetensorsFile& file, const ckpt::TensorEntry& entry,
                              const Expected& expected) {
  const EncodedSettings& s = expected.settings;
  const std::vector<int64_t> rows = integers(file, entry.name + std::string(kRows));
  // Each has a row of its own, so there are no more groups than rows.
  if (rows.empty())
    throw DataError("{}: {} has no rows; {}", path_.string(), entry.name, mending(path_));
  const auto channels = static_cast<uint64_t>(s.channels) * (s.mean_only ? 1 : 2);
  const auto factor = static_cast<uint64_t>(s.factor);
  if (floats(file, entry.name, 4, rows.size()).shape[1] != channels)
    throw DataError("{}: {} has {} channels, expected {}", path_.string(), entry.name,
                    entry.shape[1], channels);
  const auto [height, width] = sides_of(path_, entry.name);
  if (entry.shape[2] * factor != height || entry.shape[3] * factor != width)
    throw DataError("{}: {} has latents of {}x{}, expected sides of its name over {}",
                    path_.string(), entry.name, entry.shape[2], entry.shape[3], factor);
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t place = static_cast<uint64_t>(rows[i]) - expected.first();
    if (place >= rows_.size() || rows_[place].sizes >= 0 || rows_[place].absent)
      throw DataError("{}: {} has row {} twice or out of place", path_.string(), entry.name,
                      rows[i]);
    if (!expected.sizes.empty()) {
      const data::BucketShape& bucket = expected.sizes[place].bucket;
      if (!bucket.empty() && (bucket.height != height || bucket.width != width))
        throw DataError("{}: {} has row {}, whose picture has sides {}x{}; {}", path_.string(),
                        entry.name, rows[i], bucket.height, bucket.width, mending(path_));
    }
    rows_[place].index = static_cast<uint32_t>(i);
    rows_[place].sizes = static_cast<int16_t>(latents_.size());
  }
  latents_.push_back(entry);
}

void EncodedUnit::place_captions(const ckpt::SafetensorsFile& file, const Expected& expected) {
  const std::vector<int64_t> ends = integers(file, "captions.ends");
  if (ends.size() != rows_.size() || !std::ranges::is_sorted(ends) ||
      (!ends.empty() && ends[0] < 0))
    throw DataError("{}: captions.ends does not hold {} ascending ends", path_.string(),
                    rows_.size());
  for (size_t i = 0; i < ends.size(); ++i) rows_[i].caption_end = ends[i];
  const auto tokens = static_cast<uint64_t>(ends.empty() ? 0 : ends.back());
  const auto width = static_cast<uint64_t>(expected.settings.text_width);
  captions_ = floats(file, "captions", 2, tokens);
  pooled_ = floats(file, "pooled", 2, rows_.size());
  if (captions_.shape[1] != width ||
      pooled_.shape[1] != static_cast<uint64_t>(expected.settings.pooled_width))
    throw DataError("{}: captions are not {} wide", path_.string(), width);
}

/// Units of before sums have none.
void EncodedUnit::find_sums(const ckpt::SafetensorsFile& file) {
  const ckpt::TensorEntry* sums = file.find("sums");
  if (sums == nullptr) return;
  if (sums->dtype != ckpt::DType::kI64 ||
      sums->shape != std::vector<uint64_t>{rows_.size(), kUnitParts})
    throw DataError("{}: sums has shape {}, expected {} rows of {} integers", path_.string(),
                    ckpt::shape_text(sums->shape), rows_.size(), kUnitParts);
  sums_ = *sums;
}

EncodedUnit::Piece EncodedUnit::piece(uint64_t row, UnitPart part) const {
  const Row& at = rows_[row];
  if (part == UnitPart::kLatents)
    return {latents_[static_cast<size_t>(at.sizes)], at.index, at.index + 1};
  if (part == UnitPart::kPooled) return {pooled_, row, row + 1};
  return {captions_, static_cast<uint64_t>(row == 0 ? 0 : rows_[row - 1].caption_end),
          static_cast<uint64_t>(at.caption_end)};
}

uint64_t EncodedUnit::sum(const File& file, uint64_t row, UnitPart part) const {
  uint64_t value = 0;
  const uint64_t place = row * kUnitParts + static_cast<uint64_t>(part);
  file.read_at(data_start_ + sums_.begin + place * sizeof(value),
               std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

at::Tensor EncodedUnit::read(const File& file, uint64_t row, UnitPart part) const {
  MM_CHECK(row < rows_.size() && has(row), "row {} of {} is not there", row, rows_.size());
  const Piece from = piece(row, part);
  at::ScalarType type = at::kFloat;
  if (from.entry.dtype == ckpt::DType::kBF16) type = at::kBFloat16;
  if (from.entry.dtype == ckpt::DType::kF16) type = at::kHalf;
  std::vector<int64_t> shape(from.entry.shape.begin(), from.entry.shape.end());
  shape[0] = static_cast<int64_t>(from.end - from.begin);
  at::Tensor out = at::empty(shape, at::TensorOptions().dtype(type));
  const std::span<std::byte> bytes(static_cast<std::byte*>(out.mutable_data_ptr()), out.nbytes());
  if (!bytes.empty())
    file.read_at(data_start_ + from.entry.begin + from.begin * row_bytes(from.entry), bytes);
  const uint64_t is = xxh3_64(bytes), written = sums_.name.empty() ? is : sum(file, row, part);
  if (is != written)
    throw DataError(
        "{}: row {}: its {} changed since mmshard encode (XXH3 {:016x}, expected "
        "{:016x}); {}",
        path_.string(), first_ + row, kPartNames[static_cast<size_t>(part)], is, written,
        mending(path_));
  out = out.to(at::kFloat);
  return part == UnitPart::kCaption ? out : out[0];
}

bool EncodedUnit::made_of(const File& file, uint64_t row, std::span<const int32_t> tokens) const {
  return sums_.name.empty() || sum(file, row, UnitPart::kTokens) == xxh3_64(std::as_bytes(tokens));
}

}  // namespace mm::run
