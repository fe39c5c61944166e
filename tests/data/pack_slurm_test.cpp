// Tasks of a real Slurm pack one data set.
#include <doctest/doctest.h>

#include "lib/data/verify_dataset.h"
#include "tests/data/mmshard_process.h"
#include "tests/data/toy_source.h"
#include "tests/probe/slurm_lab.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

size_t count_of(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("Slurm: eight tasks of srun on four nodes pack one set, with the bytes of one process") {
  const mm::probe::test::SlurmLab lab;
  if (!lab.ready()) {
    MESSAGE("skipped: " << lab.why_not());
    return;
  }
  const TempDir dir;
  auto rows = good_rows(1500);
  rows[700].first = "truncated.jpg";
  write_jsonl(dir / "in.jsonl", rows);
  const std::string arguments = fmt::format(
      "pack in.jsonl --image-root {} --tokenizer {} --image-side 8 --patch 4 --max-length 64 "
      "--shard-size 0.01 --bad-limit 1 --threads 1 --json --quiet --out ",
      field_picture("").string(), toy_tokenizer().string());
  REQUIRE(mmshard(dir, arguments + "one").code == 0);
  const std::string srun =
      fmt::format("cd '{}' && {} timeout 100 srun -Q -N4 -n8 --chdir='{}' {}/mmshard ",
                  dir.path().string(), lab.variables(), dir.path().string(), MM_BIN_DIR);
  const int status = std::system((srun + arguments + "set >stdout 2>stderr").c_str());
  INFO(mm::read_file(dir / "stderr"));
  REQUIRE(WEXITSTATUS(status) == 0);
  // One task finished the set; the others say that they did not, or came when it was there.
  const std::string said = mm::read_file(dir / "stdout");
  CHECK(count_of(said, "\"counts\":") == 8);
  CHECK(count_of(said, "\"by_other_task\": true") + count_of(said, "\"was_there\": true") == 7);
  CHECK(contents(dir / "set") == contents(dir / "one"));
  CHECK(verify_dataset(dir / "set").sound());
}
