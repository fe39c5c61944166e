#include "lib/ckpt/piece_reader.h"

#include <algorithm>
#include <cstring>

#include "lib/base/error.h"

namespace mm::ckpt {
namespace {

constexpr uint64_t kPartBytes = 8 << 20;

/// Copies the packed elements of `box` to their places in a packed tensor of `shape`: runs along
/// the last dimension, counted up like an odometer. A scalar is one run of one element.
void scatter(std::span<const std::byte> part, const ElementBox& box,
             std::span<const uint64_t> shape, size_t element_bytes, std::span<std::byte> out) {
  const size_t rank = shape.size();
  const uint64_t run = rank == 0 ? 1 : box.shape.back();
  std::vector<uint64_t> index(rank, 0);
  for (size_t from = 0; from < part.size(); from += run * element_bytes) {
    uint64_t to = 0;
    for (size_t d = 0; d < rank; ++d) to = to * shape[d] + box.offset[d] + index[d];
    std::memcpy(out.data() + to * element_bytes, part.data() + from, run * element_bytes);
    for (size_t d = rank > 0 ? rank - 1 : 0; d-- > 0;) {
      if (++index[d] < box.shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

void stream_entry(const SafetensorsFile& file, const TensorEntry& entry, const ByteSink& sink) {
  const uint64_t bytes = packed_bytes(entry.dtype, entry.shape).value();
  std::vector<std::byte> part;
  for (uint64_t at = 0; at < bytes; at += part.size()) {
    part.resize(std::min(kPartBytes, bytes - at));
    file.read_range(entry, at, part);
    sink(part);
  }
}

PieceReader::PieceReader(std::filesystem::path directory, Manifest manifest)
    : directory_(std::move(directory)), manifest_(std::move(manifest)) {}

const SafetensorsFile& PieceReader::file(size_t index) const {
  auto found = open_.find(index);
  if (found == open_.end()) {
    found = open_.emplace(index, SafetensorsFile::open(directory_ / manifest_.files.at(index).name))
                .first;
  }
  return found->second;
}

const TensorEntry& PieceReader::entry(const TensorRecord& record, const Piece& piece) const {
  const TensorEntry& entry = file(piece.file).at(piece.tensor);
  if (entry.dtype != record.dtype || entry.shape != piece.box.shape) {
    throw DataError("{}: {} is {} {}; the manifest says {} {}",
                    (directory_ / manifest_.files[piece.file].name).string(), piece.tensor,
                    dtype_name(entry.dtype), shape_text(entry.shape), dtype_name(record.dtype),
                    shape_text(piece.box.shape));
  }
  return entry;
}

void PieceReader::stream(const TensorRecord& record, const ByteSink& sink) const {
  if (record.pieces.size() == 1) {
    const Piece& piece = record.pieces.front();
    return stream_entry(file(piece.file), entry(record, piece), sink);
  }
  if (size_bits(record.dtype) % 8 != 0)
    throw DataError("{}: {} is cut, which is not possible for {}", directory_.string(), record.name,
                    dtype_name(record.dtype));
  const auto element_bytes = static_cast<size_t>(size_bits(record.dtype) / 8);
  // All pieces are found, with the sizes of real files, before a tensor's size is believed.
  for (const Piece& piece : record.pieces) entry(record, piece);
  std::vector<std::byte> whole(packed_bytes(record.dtype, record.shape).value());
  for (const Piece& piece : record.pieces) {
    const std::vector<std::byte> part = file(piece.file).read(entry(record, piece));
    scatter(part, piece.box, record.shape, element_bytes, whole);
  }
  sink(whole);
}

}  // namespace mm::ckpt
