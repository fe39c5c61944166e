#include "lib/data/text_stream.h"

#include <algorithm>
#include <span>

#include "lib/base/error.h"

namespace mm::data {
namespace {
constexpr uint64_t kBlockBytes = uint64_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
}  // namespace

TextStream::TextStream(const std::filesystem::path& path) : file_(File::open_read(path)) {
  if (is_compressed(path)) unpacked_ = std::make_unique<UnpackedFile>(path);
  if (refill() && buffer_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

bool TextStream::refill() {
  buffer_offset_ += buffer_.size();
  at_ = 0;
  buffer_.resize(kBlockBytes);
  const auto block = std::as_writable_bytes(std::span(buffer_));
  if (unpacked_) {
    buffer_.resize(unpacked_->read(block));
  } else {
    buffer_.resize(std::min(file_.size_bytes() - buffer_offset_, kBlockBytes));
    file_.read_at(buffer_offset_, std::as_writable_bytes(std::span(buffer_)));
  }
  return !buffer_.empty();
}

bool read_line(TextStream& in, std::string& line) {
  line.clear();
  if (in.peek() == TextStream::kEnd) return false;
  for (int byte = in.get(); byte != TextStream::kEnd && byte != '\n'; byte = in.get()) {
    if (line.size() == kMaxRowBytes) {
      throw DataError("{}: line that ends after byte {} is longer than {} MiB", in.path().string(),
                      in.offset(), kMaxRowBytes >> 20);
    }
    line.push_back(static_cast<char>(byte));
  }
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

}  // namespace mm::data
