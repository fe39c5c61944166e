#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>

#include "lib/base/json.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

struct Output {
  int code = -1;
  std::string out, err;
};

/// Runs mmshard with arguments as a shell reads them, in `dir`.
Output mmshard(const TempDir& dir, const std::string& arguments, const std::string& before = "") {
  const std::string command = fmt::format("cd '{}' && {} '{}/mmshard' {} >stdout 2>stderr",
                                          dir.path().string(), before, MM_BIN_DIR, arguments);
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), mm::read_file(dir / "stdout"), mm::read_file(dir / "stderr")};
}

std::string flags() {
  return fmt::format(" --image-root '{}/field' --tokenizer '{}' --image-side 8 --patch 4 --quiet",
                     MM_TEST_DATA, toy_tokenizer().string());
}

}  // namespace

TEST_CASE("mmshard pack: a mixture by flags, its end is in the ledger, a wrong count is code 2") {
  const TempDir dir;
  write_jsonl(dir / "a.jsonl", good_rows(12));
  write_jsonl(dir / "b.jsonl", good_rows(2));
  const std::string sources = "pack --source a.jsonl --weight 3 --source b.jsonl --weight 1";
  const Output packed = mmshard(dir, sources + " --out set --json" + flags());
  CHECK(packed.err == "");
  REQUIRE(packed.code == 0);
  const mm::Json json = mm::parse_json(packed.out, "stdout");
  CHECK(json["counts"]["samples"] == 11);
  CHECK(json["counts"]["skipped"] == 1);
  CHECK(mm::read_file(dir / "set/ledger.jsonl").find("mixture_end") != std::string::npos);
  const Output wrong =
      mmshard(dir, "pack --source a.jsonl --weight 3 --source b.jsonl --out x" + flags());
  CHECK(wrong.code == 2);
  CHECK(wrong.err ==
        "mmshard: error: --weight is given 1 times for 2 sources; give it once for each\n");
  CHECK(mmshard(dir, "pack none.jsonl --out x" + flags()).code == 2);
  CHECK(mmshard(dir, "pack a.jsonl --format nope --out x" + flags()).code == 2);
}

TEST_CASE("mmshard export: tars and folders that can be packed again, an output that exists is 2") {
  const TempDir dir;
  write_jsonl(dir / "a.jsonl", good_rows(6));
  REQUIRE(mmshard(dir, "pack a.jsonl --out set" + flags()).code == 0);
  const Output tars = mmshard(dir, "export set --to webdataset --out tars --quiet");
  CHECK(tars.out == "tars: 6 samples, 6 pictures, 1 files\n");
  CHECK(mmshard(dir, "export set --to folder --out tars --quiet").code == 2);
  CHECK(mm::parse_json(mmshard(dir, "export set --to folder --out f --json --quiet").out,
                       "stdout")["files"] == 13);
  const std::string plain =
      fmt::format(" --tokenizer '{}' --image-side 8 --patch 4 --quiet", toy_tokenizer().string());
  CHECK(mmshard(dir, "pack tars/00000.tar --out again" + plain).code == 0);
  CHECK(mmshard(dir, "pack 'tars/*.tar' --out globbed" + plain).code == 0);
  CHECK(mmshard(dir, "pack f --out from-folder" + plain).code == 0);
}

TEST_CASE("mmshard pack: Parquet without its module is one line that says how to get it") {
  const TempDir dir;
  mm::write_file_atomic(dir / "in.parquet", "PAR1....PAR1");
  const Output missing = mmshard(dir, "pack in.parquet --out set" + flags(),
                                 "MM_PARQUET_MODULE=/nowhere/libmm_parquet.so");
  CHECK(missing.code == 2);
  CHECK(missing.err.find("scripts/fetch-arrow.sh") != std::string::npos);
  CHECK(std::count(missing.err.begin(), missing.err.end(), '\n') == 1);
}
