#include "lib/run/import_shell_fields.h"

#include "lib/base/error.h"

namespace mm::run::detail {
namespace {

constexpr size_t kMaxExpandedBytes = size_t{8} << 20;

}  // namespace

std::string join_words(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out += (i == 0 ? "" : " ") + words[i];
  return out;
}

void charge_expansion(size_t& budget, size_t bytes) {
  if ((budget += bytes) > kMaxExpandedBytes)
    throw DataError("variables expand to more than {} MiB; not a training script",
                    kMaxExpandedBytes >> 20);
}

void ShellFields::add(std::string_view text) {
  charge_expansion(budget_, text.size());
  now_ += text;
  open_ = true;
}

void ShellFields::add_split(std::string_view text) {
  if (!split_) return add(text);
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && !is_blank(text[i]) && text[i] != '\n') continue;
    if (i > begin) add(text.substr(begin, i - begin));
    if (i < text.size()) close();
    begin = i + 1;
  }
}

void ShellFields::close() {
  if (open_) done_.push_back(std::move(now_));
  now_.clear();
  open_ = false;
}

std::vector<std::string> ShellFields::finish() {
  close();
  return std::move(done_);
}

}  // namespace mm::run::detail
