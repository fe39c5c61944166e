#include "lib/health/kernel_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace mm::health {
namespace {

constexpr off_t kMaxBytes = off_t{16} << 20;
constexpr size_t kMaxRecords = 1'000'000;

template <typename T>
std::optional<T> parse(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "6,1234,5678901,-;text": level, number, microseconds since the start, flags.
std::optional<KernelLine> parse_record(std::string_view line) {
  const size_t semicolon = line.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  std::string_view head = line.substr(0, semicolon);
  std::array<std::string_view, 3> fields;
  for (std::string_view& field : fields) {
    const size_t comma = head.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    field = head.substr(0, comma);
    head.remove_prefix(comma + 1);
  }
  const auto us = parse<int64_t>(fields[2]);
  if (!parse<int>(fields[0]) || !us) return std::nullopt;
  return KernelLine{1e-6 * static_cast<double>(*us), std::string(line.substr(semicolon + 1))};
}

// "[ 12.345] text", alone or behind syslog's "kernel: ".
std::optional<KernelLine> parse_stamped(std::string_view line) {
  constexpr std::string_view kMark = "kernel: [";
  const size_t mark = line.find(kMark);
  const size_t open = mark != std::string_view::npos ? mark + kMark.size() - 1 : 0;
  if (line.empty() || line[open] != '[') return std::nullopt;
  const size_t close = line.find(']', open);
  if (close == std::string_view::npos) return std::nullopt;
  const auto seconds = parse<double>(line.substr(open + 1, close - open - 1));
  if (!seconds) return std::nullopt;
  const size_t text = std::min(line.find_first_not_of(' ', close + 1), line.size());
  return KernelLine{*seconds, std::string(line.substr(text))};
}

void take_lines(std::string_view text, KernelLog& log) {
  while (!text.empty() && log.lines.size() < kMaxRecords) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    // A record's further lines (" SUBSYSTEM=pci") begin with a blank and say nothing more.
    if (!line.empty() && line.front() != ' ') log.lines.push_back(parse_kernel_line(line));
  }
}

}  // namespace

KernelLine parse_kernel_line(std::string_view line) {
  if (auto record = parse_record(line)) return *record;
  if (auto stamped = parse_stamped(line)) return *stamped;
  return {std::nullopt, std::string(line)};
}

KernelLog read_kernel_log(const std::filesystem::path& path) {
  KernelLog log;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    log.problem = fmt::format("{}: {}", path.string(), std::generic_category().message(errno));
    return log;
  }
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > kMaxBytes)
    ::lseek(fd, -kMaxBytes, SEEK_END);
  std::string text;
  std::array<char, 65536> part{};
  while (text.size() < static_cast<size_t>(kMaxBytes)) {
    // /dev/kmsg gives one record a read, and EPIPE for one that was overwritten meanwhile.
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got <= 0) break;
    text.append(part.data(), static_cast<size_t>(got));
  }
  ::close(fd);
  log.checked = true;
  take_lines(text, log);
  return log;
}

}  // namespace mm::health
