#include "lib/run/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <string>

#include "lib/base/hash.h"

namespace mm::run {
namespace {

// Protocol-buffer wire format: a key is (field << 3 | wire type); 0 varint, 1 fixed 64, 2
// length-delimited, 5 fixed 32.
void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

template <typename T>
void put_fixed(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Event: 1 wall_time (double), 2 step (int64), 3 file_version (string), 5 summary, 7 session_log.
std::string event_head(int64_t step) {
  std::string event;
  put_varint(event, 1 << 3 | 1);
  put_fixed(event, std::bit_cast<uint64_t>(wall_seconds()));
  put_varint(event, 2 << 3 | 0);
  put_varint(event, static_cast<uint64_t>(step));
  return event;
}

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::filesystem::path event_path(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  char host[256] = "host";
  gethostname(host, sizeof(host) - 1);
  return directory / fmt::format("events.out.tfevents.{:.6f}.{}", wall_seconds(), host);
}

}  // namespace

TensorboardWriter::TensorboardWriter(const std::filesystem::path& directory)
    : file_(File::create(event_path(directory))) {
  std::string event = event_head(0);
  put_bytes(event, 3, "brain.Event:2");
  record(event);
}

void TensorboardWriter::start_at(int64_t step) {
  std::string log;  // SessionLog: 1 status, of which 1 is START
  put_varint(log, 1 << 3);
  put_varint(log, 1);
  std::string event = event_head(step);
  put_bytes(event, 7, log);
  record(event);
}

void TensorboardWriter::scalar(std::string_view tag, double value, int64_t step) {
  std::string summary_value;  // Summary.Value: 1 tag, 2 simple_value (float)
  put_bytes(summary_value, 1, tag);
  put_varint(summary_value, 2 << 3 | 5);
  put_fixed(summary_value, std::bit_cast<uint32_t>(static_cast<float>(value)));
  summary(summary_value, step);
}

void TensorboardWriter::image(std::string_view tag, const Png& picture, int64_t step) {
  // Summary.Image: 1 height, 2 width, 3 colorspace (3 is RGB), 4 encoded_image_string.
  std::string image;
  const auto put_field = [&](int field, int64_t value) {
    put_varint(image, static_cast<uint64_t>(field) << 3);
    put_varint(image, static_cast<uint64_t>(value));
  };
  put_field(1, picture.height);
  put_field(2, picture.width);
  put_field(3, 3);
  put_bytes(image, 4, picture.file);
  std::string summary_value;  // Summary.Value: 1 tag, 4 image
  put_bytes(summary_value, 1, tag);
  put_bytes(summary_value, 4, image);
  summary(summary_value, step);
}

void TensorboardWriter::summary(std::string_view value, int64_t step) {
  std::string all;
  put_bytes(all, 1, value);
  std::string event = event_head(step);
  put_bytes(event, 5, all);
  record(event);
}

void TensorboardWriter::record(std::string_view event) {
  std::string frame;
  put_fixed(frame, static_cast<uint64_t>(event.size()));
  put_fixed(frame, masked_crc(frame));
  frame += event;
  put_fixed(frame, masked_crc(event));
  file_.write(frame);
}

}  // namespace mm::run
