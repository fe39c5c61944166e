#include "lib/ckpt/safetensors_writer.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <system_error>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/json_scanner.h"

namespace mm::ckpt {
namespace {

// Indices of `tensors` in file order; refuses names that the format cannot hold.
std::vector<size_t> file_order(std::span<const TensorSource> tensors, const std::string& origin) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (tensors[a].dtype != tensors[b].dtype) return tensors[a].dtype > tensors[b].dtype;
    return tensors[a].name < tensors[b].name;
  });
  std::vector<std::string_view> names;
  for (const TensorSource& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__" || !is_valid_utf8(tensor.name)) {
      throw DataError("{}: {} cannot be the name of a tensor", origin, printable_name(tensor.name));
    }
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw DataError("{}: two tensors named {}", origin, printable_name(*twice));
  return order;
}

std::vector<TensorEntry> lay_out(std::span<const TensorSource> tensors,
                                 std::span<const size_t> order, const std::string& origin) {
  std::vector<TensorEntry> entries;
  entries.reserve(order.size());
  uint64_t at = 0;
  for (const size_t index : order) {
    const TensorSource& tensor = tensors[index];
    const Result<uint64_t> bytes = packed_bytes(tensor.dtype, tensor.shape);
    if (!bytes) {
      throw DataError("{}: tensor {}: {}", origin, printable_name(tensor.name),
                      bytes.failure().message);
    }
    entries.push_back({tensor.name, tensor.dtype, tensor.shape, at, at + *bytes});
    at += *bytes;
  }
  return entries;
}

std::string header_json(std::span<const TensorEntry> entries, Metadata metadata,
                        const std::string& origin) {
  metadata.emplace("format", "pt");
  std::string json = "{\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (!is_valid_utf8(key) || !is_valid_utf8(value)) {
      throw DataError("{}: metadata {} is not valid UTF-8", origin, printable_name(key));
    }
    if (json.back() != '{') json += ',';
    json += json_quoted(key) + ':' + json_quoted(value);
  }
  json += '}';
  for (const TensorEntry& entry : entries) {
    json += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        json_quoted(entry.name), dtype_name(entry.dtype),
                        fmt::join(entry.shape, ","), entry.begin, entry.end);
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > kMaxHeaderBytes) {
    throw DataError(
        "{}: the header of {} tensors needs {} bytes, the format allows {}; split the file", origin,
        entries.size(), json.size(), kMaxHeaderBytes);
  }
  return json;
}

// The data section as one stream into file and checksums.
class FileBody {
 public:
  FileBody(File& file, uint64_t data_bytes, const FaultHook& hook)
      : file_(file), data_bytes_(data_bytes), hook_(hook) {}

  void write_header(const std::string& json) {
    const uint64_t length = json.size();
    std::array<std::byte, 8> raw;
    std::memcpy(raw.data(), &length, raw.size());
    put(raw);
    put(std::as_bytes(std::span(json)));
    if (hook_) hook_("file.header");
  }

  void write_tensor(const TensorSource& tensor, const TensorEntry& entry) {
    uint64_t given = 0;
    const ByteSink sink = [&](std::span<const std::byte> bytes) {
      given += bytes.size();
      if (given > entry.size_bytes()) return;
      // Parts of a few blocks: checksums find them in the cache, and a fault can strike in between.
      while (!bytes.empty()) {
        const auto part = bytes.first(std::min<uint64_t>(bytes.size(), 4 * kBlockBytes));
        put_data(part);
        bytes = bytes.subspan(part.size());
      }
    };
    tensor.stream ? tensor.stream(sink) : sink(tensor.bytes);
    if (given != entry.size_bytes()) {
      throw DataError("{}: tensor {}: {} bytes were given for {} of shape {}, which needs {}",
                      file_.path().string(), printable_name(entry.name), given,
                      dtype_name(entry.dtype), shape_text(entry.shape), entry.size_bytes());
    }
  }

  FileChecksums finish() { return checksums_.finish(); }

 private:
  void put(std::span<const std::byte> bytes) {
    checksums_.update(bytes);
    file_.write(bytes);
  }

  void put_data(std::span<const std::byte> bytes) {
    const bool crosses_half =
        data_put_ < data_bytes_ / 2 && data_put_ + bytes.size() >= data_bytes_ / 2;
    if (crosses_half && hook_) {
      put(bytes.first(data_bytes_ / 2 - data_put_));
      hook_("file.half");
      bytes = bytes.subspan(data_bytes_ / 2 - data_put_);
      data_put_ = data_bytes_ / 2;
    }
    put(bytes);
    data_put_ += bytes.size();
  }

  File& file_;
  uint64_t data_bytes_;
  const FaultHook& hook_;
  ChecksumStream checksums_;
  uint64_t data_put_ = 0;
};

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to,
                    const FaultHook& hook) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) throw IoError("{}: cannot rename into place: {}", to.string(), error.message());
  if (hook) hook("file.renamed");
  fsync_directory(to.parent_path());
}

}  // namespace

WrittenFile write_safetensors(const std::filesystem::path& path,
                              std::span<const TensorSource> tensors, const Metadata& metadata,
                              const FaultHook& hook) {
  const std::vector<size_t> order = file_order(tensors, path.string());
  WrittenFile written{lay_out(tensors, order, path.string()), {}};
  const std::string json = header_json(written.tensors, metadata, path.string());
  const uint64_t data_bytes = written.tensors.empty() ? 0 : written.tensors.back().end;
  std::filesystem::path aside = path;
  aside += fmt::format(".tmp.{}", ::getpid());
  try {
    File file = File::create(aside);
    FileBody body(file, data_bytes, hook);
    body.write_header(json);
    for (size_t i = 0; i < order.size(); ++i)
      body.write_tensor(tensors[order[i]], written.tensors[i]);
    if (hook) hook("file.written");
    written.checksums = body.finish();
    file.sync();
    file.close();
    if (hook) hook("file.synced");
    rename_durably(aside, path, hook);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(aside, ignored);
    throw;
  }
  return written;
}

}  // namespace mm::ckpt
