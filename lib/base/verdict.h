#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lib/base/exit_code.h"

namespace mm {

/// How a run ended: what RUN/verdict.json says and batch scripts read; the exit code is its short
/// form.
struct Verdict {
  int code = 0;
  std::string message;          ///< one line for people
  std::optional<int> rank;      ///< the rank at fault
  std::string host;             ///< its node; empty if nobody is at fault
  std::optional<int> signal;    ///< what killed it
  std::optional<int64_t> step;  ///< global step, if known
  int64_t unix_ms = 0;          ///< when it was given
};

/// "done", "saved_run_again", "peer_lost", ...: the stable word of an exit code; "signal" for
/// 128+n, "unknown" for others.
std::string exit_word(int code);
inline std::string exit_word(ExitCode code) { return exit_word(static_cast<int>(code)); }

/// Atomically writes {schema, code, word, message, rank, host, signal, signal_name, step, time};
/// what is not known is null.
void write_verdict(const std::filesystem::path& path, const Verdict& verdict);

/// Nothing if the file is absent. Throws DataError, naming the file, if it is no verdict of a
/// schema that this version knows.
std::optional<Verdict> read_verdict(const std::filesystem::path& path);

}  // namespace mm
