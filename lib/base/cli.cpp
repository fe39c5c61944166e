#include "lib/base/cli.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"

namespace mm {
namespace {

constexpr size_t kMaxLineBytes = 4000;
constexpr std::string_view kForeignPrefix = "filesystem error: ";

int complain(std::string_view tool, const char* kind, const char* what, ExitCode code) {
  std::fflush(stdout);
  fmt::print(stderr, "{}: {}: {}\n", tool, kind, escape_text(what, kMaxLineBytes));
  return static_cast<int>(code);
}

}  // namespace

int run_cli(std::string_view tool, const std::function<int()>& body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    const bool ours = error.exit_code() == ExitCode::kInternal;
    return complain(tool, ours ? "internal error" : "error", error.what(), error.exit_code());
  } catch (const std::filesystem::filesystem_error& error) {
    std::string_view what = error.what();  // names what was tried, and the paths
    if (what.starts_with(kForeignPrefix)) what.remove_prefix(kForeignPrefix.size());
    return complain(tool, "error", what.data(), ExitCode::kStorage);
  } catch (const std::bad_alloc&) {
    return complain(tool, "error", "out of memory", ExitCode::kInternal);
  } catch (const std::exception& error) {
    return complain(tool, "internal error", error.what(), ExitCode::kInternal);
  }
}

}  // namespace mm
