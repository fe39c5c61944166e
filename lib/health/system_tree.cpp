#include "lib/health/system_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace mm::health {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

std::filesystem::path SystemTree::at(std::string_view path) const {
  return root_ / std::filesystem::path(path).relative_path();
}

// Not base's read_file: a kernel file that says EINVAL (the speed of a port that is down) is an
// everyday answer.
std::optional<std::string> SystemTree::text(std::string_view path) const {
  const int fd = ::open(at(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  // Nearly all of these files are short; a large buffer for each would cost more than reading.
  std::string content;
  std::array<char, 4096> part{};
  ssize_t got = 0;
  while (content.size() < kMaxBytes && (got = ::read(fd, part.data(), part.size())) > 0)
    content.append(part.data(), static_cast<size_t>(got));
  ::close(fd);
  if (got < 0) return std::nullopt;
  return std::string(trim(content));
}

std::optional<int64_t> SystemTree::number(std::string_view path) const {
  const auto content = text(path);
  if (!content) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(content->data(), content->data() + content->size(), value);
  if (error != std::errc() || end != content->data() + content->size()) return std::nullopt;
  return value;
}

std::filesystem::path SystemTree::resolved(std::string_view path) const {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(at(path), error);
  if (error) return path;
  const std::filesystem::path root = std::filesystem::canonical(root_, error);
  return error ? real : "/" / real.lexically_relative(root);
}

std::vector<std::string> SystemTree::names(std::string_view directory) const {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(at(directory), error), end; !error && it != end;
       it.increment(error)) {
    found.push_back(it->path().filename().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::string> field_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && trim(line.substr(0, colon)) == key)
      return std::string(trim(line.substr(colon + 1)));
  }
  return std::nullopt;
}

}  // namespace mm::health
