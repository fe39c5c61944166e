#include "lib/base/verdict.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

using mm::Verdict;
using mm::test::message_of;
using mm::test::TempDir;

namespace {

std::string refused(const std::string& text) {
  const TempDir dir;
  mm::write_file_atomic(dir / "v.json", text);
  const std::string message = message_of<mm::DataError>([&] { mm::read_verdict(dir / "v.json"); });
  const std::string lead = (dir / "v.json").string();
  return message.starts_with(lead) ? message.substr(lead.size()) : message;
}

}  // namespace

TEST_CASE("verdict: written and read back, with every field") {
  const TempDir dir;
  Verdict verdict;
  verdict.code = 76;
  verdict.message = "rank 1 was killed by SIGKILL";
  verdict.rank = 1;
  verdict.host = "n07";
  verdict.signal = 9;
  verdict.step = 420;
  verdict.unix_ms = 1769860800123;
  mm::write_verdict(dir / "v.json", verdict);
  CHECK(mm::read_file(dir / "v.json") == R"({
  "schema": 1,
  "code": 76,
  "word": "peer_lost",
  "message": "rank 1 was killed by SIGKILL",
  "rank": 1,
  "host": "n07",
  "signal": 9,
  "signal_name": "SIGKILL",
  "step": 420,
  "time": "2026-01-31T12:00:00.123Z",
  "unix_ms": 1769860800123
}
)");
  const Verdict again = mm::read_verdict(dir / "v.json").value();
  CHECK(again.code == 76);
  CHECK(again.message == verdict.message);
  CHECK(again.rank == 1);
  CHECK(again.host == "n07");
  CHECK(again.signal == 9);
  CHECK(again.step == 420);
  CHECK(again.unix_ms == verdict.unix_ms);
}

TEST_CASE("verdict: what is not known is null, and an absent file is nothing") {
  const TempDir dir;
  CHECK_FALSE(mm::read_verdict(dir / "v.json").has_value());
  mm::write_verdict(dir / "v.json", {.message = "bad \xff text"});
  const Verdict verdict = mm::read_verdict(dir / "v.json").value();
  CHECK(verdict.code == 0);
  CHECK_FALSE(verdict.rank.has_value());
  CHECK(verdict.host.empty());
  CHECK(verdict.message == "bad \xEF\xBF\xBD text");
}

TEST_CASE("verdict: a file that is no verdict is named") {
  CHECK(refused("[]") == ": expected an object");
  CHECK(refused("{\"schema\": 2, \"code\": 0}") ==
        ": schema: expected 1; written by another version?");
  CHECK(refused("{\"schema\": 1}") == ": code is missing");
  CHECK(refused("{\"schema\": 1, \"code\": \"x\"}") == ": code: expected an integer");
  CHECK(refused("{\"schema\": 1, \"code\": 0, \"host\": 3}") == ": host: expected a string");
  CHECK(refused("{\"sch").starts_with(": byte "));
}

TEST_CASE("exit_word: one stable word for each code of the table") {
  CHECK(mm::exit_word(mm::ExitCode::kDone) == "done");
  CHECK(mm::exit_word(2) == "usage");
  CHECK(mm::exit_word(75) == "saved_run_again");
  CHECK(mm::exit_word(124) == "time_limit");
  CHECK(mm::exit_word(137) == "signal");
  CHECK(mm::exit_word(50) == "unknown");
}
