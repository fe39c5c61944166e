#include "lib/ckpt/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "lib/base/error.h"
#include "lib/ckpt/json_scanner.h"

namespace mm::ckpt {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

/// Files that torch.save wrote: a zip, or in older releases a bare pickle.
bool is_pickled(std::span<const std::byte, 8> start) {
  constexpr std::array<std::byte, 4> kZip{std::byte{'P'}, std::byte{'K'}, std::byte{3},
                                          std::byte{4}};
  const bool pickle = start[0] == std::byte{0x80} && start[1] >= std::byte{2} &&
                      start[1] <= std::byte{5} && start[7] != std::byte{0};
  // Of a header's length the upper half is 0, of a zip's version and flags not all.
  const bool long_header =
      std::all_of(start.begin() + 4, start.end(), [](std::byte b) { return b == std::byte{0}; });
  return pickle || (!long_header && std::equal(kZip.begin(), kZip.end(), start.begin()));
}

uint64_t read_header_length(const File& file, uint64_t file_bytes) {
  if (file_bytes < 8) {
    throw DataError(
        "{}: {} bytes are too few for a safetensors file: 8 bytes of header length expected",
        file.path().string(), file_bytes);
  }
  std::array<std::byte, 8> raw;
  file.read_at(0, raw);
  if (is_pickled(raw))
    throw DataError(
        "{}: a file of torch.save, which is not read: loading it could run code; save the model as "
        "safetensors",
        file.path().string());
  uint64_t length = 0;
  std::memcpy(&length, raw.data(), raw.size());
  if (length > kMaxHeaderBytes) {
    throw DataError("{}: header length {} is above the format's limit of {} bytes",
                    file.path().string(), length, kMaxHeaderBytes);
  }
  if (length > file_bytes - 8) {
    throw DataError("{}: header length {} does not fit into the file of {} bytes",
                    file.path().string(), length, file_bytes);
  }
  return length;
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  File file = File::open_read(path);
  const uint64_t file_bytes = file.size_bytes();
  const uint64_t length = read_header_length(file, file_bytes);
  std::string json(length, '\0');
  file.read_at(8, std::as_writable_bytes(std::span(json)));
  const uint64_t data_bytes = file_bytes - 8 - length;
  SafetensorsHeader header = parse_safetensors_header(json, data_bytes, path.string());
  return SafetensorsFile(std::move(file), std::move(header), 8 + length, data_bytes);
}

SafetensorsFile::SafetensorsFile(File file, SafetensorsHeader header, uint64_t data_start,
                                 uint64_t data_bytes)
    : file_(std::move(file)),
      header_(std::move(header)),
      data_start_(data_start),
      data_bytes_(data_bytes) {
  by_name_.reserve(header_.tensors.size());
  for (size_t i = 0; i < header_.tensors.size(); ++i) by_name_.emplace(header_.tensors[i].name, i);
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &header_.tensors[it->second];
}

const TensorEntry& SafetensorsFile::at(std::string_view name) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr) {
    throw DataError("{}: no tensor {} among {}", path().string(), printable_name(name),
                    header_.tensors.size());
  }
  return *entry;
}

void SafetensorsFile::read(const TensorEntry& entry, std::span<std::byte> out) const {
  MM_CHECK(out.size() == entry.size_bytes(), "tensor {}: buffer of {} bytes for {}", entry.name,
           out.size(), entry.size_bytes());
  read_range(entry, 0, out);
}

std::vector<std::byte> SafetensorsFile::read(const TensorEntry& entry) const {
  std::vector<std::byte> bytes(entry.size_bytes());
  read(entry, bytes);
  return bytes;
}

void SafetensorsFile::read_range(const TensorEntry& entry, uint64_t offset,
                                 std::span<std::byte> out) const {
  MM_CHECK(offset <= entry.size_bytes() && out.size() <= entry.size_bytes() - offset,
           "tensor {}: bytes [{}, +{}) of {}", entry.name, offset, out.size(), entry.size_bytes());
  if (!out.empty()) file_.read_at(data_start_ + entry.begin + offset, out);
}

}  // namespace mm::ckpt
