#include "lib/run/sample_ledger.h"

#include <algorithm>

#include "lib/base/json.h"
#include "lib/run/metrics.h"

namespace mm::run {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> ledger_files(const fs::path& run_directory) {
  std::vector<fs::path> files;
  if (!fs::exists(run_directory / "ledger")) return files;
  for (const auto& entry : fs::directory_iterator(run_directory / "ledger")) {
    if (entry.path().filename().string().starts_with("rank-") &&
        entry.path().extension() == ".jsonl")
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

File open_for_rank(const fs::path& run_directory, int rank) {
  fs::create_directories(run_directory / "ledger");
  return File::create(run_directory / "ledger" / fmt::format("rank-{:05}.jsonl", rank),
                      /*append=*/true);
}

}  // namespace

SampleLedger::SampleLedger(const fs::path& run_directory, int rank)
    : file_(open_for_rank(run_directory, rank)) {}

void SampleLedger::record(int64_t step, const std::string& stage, uint64_t epoch,
                          const std::vector<uint64_t>& samples) {
  file_.write(
      Json{{"step", step}, {"stage", stage}, {"epoch", epoch}, {"samples", samples}}.dump() + "\n");
}

void SampleLedger::cut(const fs::path& run_directory, int64_t step) {
  for (const fs::path& file : ledger_files(run_directory)) cut_lines_after_step(file, step);
  cut_lines_after_step(run_directory / "ledger" / "dropped.jsonl", step);
}

std::vector<LedgerRow> read_ledger(const fs::path& run_directory) {
  std::vector<LedgerRow> rows;
  for (const fs::path& file : ledger_files(run_directory)) {
    const std::string text = read_file(file);
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      const Json json =
          parse_json(std::string_view(text).substr(begin, end - begin), file.string());
      rows.push_back({json.at("step"), json.at("stage"), json.at("epoch"),
                      json.at("samples").get<std::vector<uint64_t>>()});
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const LedgerRow& a, const LedgerRow& b) { return a.step < b.step; });
  return rows;
}

}  // namespace mm::run
