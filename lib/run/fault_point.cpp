#include "lib/run/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <string>

#include "lib/base/env.h"
#include "lib/base/error.h"

namespace mm::run {
namespace {

int number_after(const std::string& text, char mark, int fallback) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return fallback;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data() + at + 1, text.data() + text.size(), value);
  if (error != std::errc()) throw UsageError("MM_FAULT={}: expected point[@rank][:nth]", text);
  return value;
}

}  // namespace

ckpt::FaultHook fault_hook(int rank) {
  const auto text = env::get("MM_FAULT");
  if (!text) return {};
  const std::string point = text->substr(0, text->find_first_of("@:"));
  const int armed_rank = number_after(*text, '@', rank);
  const auto left = std::make_shared<int>(number_after(*text, ':', 1));
  if (armed_rank != rank) return {};
  return [point, left](std::string_view reached) {
    if (reached == point && --*left == 0) kill(getpid(), SIGKILL);
  };
}

}  // namespace mm::run
