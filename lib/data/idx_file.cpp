#include "lib/data/idx_file.h"

#include <algorithm>
#include <array>
#include <memory>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/unpacked_file.h"

namespace mm::data {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr uint64_t kMaxItemBytes = uint64_t{1} << 28;
constexpr size_t kBlock = 64 << 10;

}  // namespace

/// The file's bytes, unpacked if it is compressed.
struct IdxFile::Input {
  explicit Input(const std::filesystem::path& path) : file(File::open_read(path)) {
    if (is_compressed(path)) unpacked = std::make_unique<UnpackedFile>(path);
  }
  /// Fewer than asked for only at the end.
  size_t read(std::span<std::byte> to) {
    if (!unpacked) {
      const uint64_t left = file.size_bytes() - std::min(at, file.size_bytes());
      to = to.first(std::min<uint64_t>(to.size(), left));
      file.read_at(at, to);
      at += to.size();
      return to.size();
    }
    size_t size = 0;
    for (size_t got = 1; got > 0 && size < to.size(); size += got)
      got = unpacked->read(to.subspan(size));
    return size;
  }

  File file;
  std::unique_ptr<UnpackedFile> unpacked;
  uint64_t at = 0;
};

IdxFile::IdxFile(const std::filesystem::path& path, size_t dimensions)
    : path_(path), in_(std::make_unique<Input>(path)) {
  std::array<std::byte, 4> magic{};
  read(magic);
  const auto at = [&](size_t i) { return std::to_integer<uint8_t>(magic[i]); };
  if (at(0) != 0 || at(1) != 0)
    throw DataError("{}: not an idx file: it begins with {} {}, expected 0 0", path.string(), at(0),
                    at(1));
  if (at(2) != kUnsignedByte || at(3) != dimensions) {
    throw DataError("{}: idx of type 0x{:02x} in {} dimensions, expected bytes (0x08) in {}",
                    path.string(), at(2), at(3), dimensions);
  }
  for (size_t d = 0; d < dimensions; ++d) {
    std::array<std::byte, 4> number{};
    read(number);
    uint32_t size = 0;
    for (const std::byte b : number) size = size << 8 | std::to_integer<uint32_t>(b);
    sizes_.push_back(size);
    if (d == 0) continue;
    // Checked after each factor, so the product cannot run over.
    item_bytes_ *= size;
    if (item_bytes_ == 0 || item_bytes_ > kMaxItemBytes)
      throw DataError("{}: an item of {} bytes; expected 1 to {}", path.string(), item_bytes_,
                      kMaxItemBytes);
  }
}

IdxFile::~IdxFile() = default;

void IdxFile::read(std::span<std::byte> to) {
  if (in_->read(to) == to.size()) return;
  if (sizes_.empty()) throw DataError("{}: ends inside its header", path_.string());
  throw DataError("{}: ends inside item {} of {}", path_.string(), read_, items());
}

bool IdxFile::next(std::vector<uint8_t>& item) {
  if (read_ == items()) return false;
  item.clear();
  while (item.size() < item_bytes_) {
    const size_t before = item.size();
    item.resize(before + std::min<uint64_t>(kBlock, item_bytes_ - before));
    read(std::as_writable_bytes(std::span(item).subspan(before)));
  }
  ++read_;
  return true;
}

std::optional<std::filesystem::path> labels_beside(const std::filesystem::path& images) {
  std::string name = images.filename().string();
  for (const auto& [from, to] : {std::pair{"images", "labels"}, std::pair{"idx3", "idx1"}}) {
    const size_t at = name.find(from);
    if (at == std::string::npos) return std::nullopt;
    name.replace(at, std::string_view(from).size(), to);
  }
  return images.parent_path() / name;
}

}  // namespace mm::data
