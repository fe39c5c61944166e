#include "tests/data/source_fuzz.h"

#include "tests/data/tar_writer.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

const std::string kRows =
    R"({"id": "x", "image": "a.png", "conversations": [{"from": "human", "value": "<image>\nq"}, {"from": "gpt", "value": "a"}]}
{"image": ["a.png", "b.png"], "caption": ["", "two \u5317"], "id": 7}
{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,Zm9v"}}, {"type": "text", "text": "q"}]}, {"role": "assistant", "content": "a", "loss": true}], "images": []}
{"messages": [{"role": "user", "content": "<image>q"}, {"role": "assistant", "content": "a"}], "images": [{"bytes": "Zm9v", "path": null}]}
{"text_list": ["One.", "Two."], "image_info": [{"image_name": "c.jpg", "matched_text_index": 1}], "similarity_matrix": [[0.5]]}
{"texts": ["a", null], "images": [null, "x.jpg"], "metadata": "[]"}
)";

std::string tar_seed(const TempDir& dir, TarKind kind, TarFilter filter) {
  TarWriter out(dir / "seed.tar", kind, filter);
  out.add("a/0.jpg", "picture").add("a/0.txt", "a cat");
  out.add(std::string(120, 'n') + ".jpg", std::string(700, 'p'));
  out.add(std::string(120, 'n') + ".json", R"({"caption": "c", "status": "success"})");
  out.close();
  return mm::read_file(dir / "seed.tar");
}

}  // namespace

TEST_CASE("fuzz: rows of JSON, one a line") {
  const TempDir dir;
  fuzz_source(dir, "in.jsonl", SourceKind::kJsonl, kRows, 1000);
}

TEST_CASE("fuzz: one array of rows") {
  const TempDir dir;
  std::string array = "[";
  for (const char c : kRows) array += c == '\n' ? ',' : c;
  array.back() = ']';
  fuzz_source(dir, "in.json", SourceKind::kLlavaJson, array, 1000);
}

TEST_CASE("fuzz: tables") {
  const TempDir dir;
  const std::string csv =
      "id,image,caption,conversations\r\n1,a.png,\"A \"\"cat\"\",\nasleep\",\r\n"
      "2,,\\N,\"[{\"\"from\"\": \"\"human\"\", \"\"value\"\": \"\"q\"\"}]\"\r\n";
  fuzz_source(dir, "in.csv", SourceKind::kCsv, csv, 1000);
  fuzz_source(dir, "in.tsv", SourceKind::kTsv, "TEXT\tpath\nA dog.\td.png\n\"x\ty\"\tz\n", 1000);
}

TEST_CASE("fuzz: InternVL meta files and mixtures") {
  const TempDir dir;
  mm::write_file_atomic(dir / "a.jsonl", kRows);
  fuzz_source(
      dir, "meta.json", SourceKind::kInternvlMeta,
      R"({"one": {"root": "r", "annotation": "a.jsonl", "repeat_time": 1.5, "length": 3}})");
  fuzz_source(dir, "mix.toml", SourceKind::kMixture,
              "[[source]]\npath = \"a.jsonl\"\nweight = 2\nrepeat = 1.5\n[[source]]\n"
              "path = \"a.jsonl\"\nweight = 1\nformat = \"jsonl\"\nkohya = false\n");
}

TEST_CASE("fuzz: tars, plain and compressed") {
  const TempDir dir;
  for (const TarKind kind : {TarKind::kUstar, TarKind::kPax, TarKind::kGnu}) {
    fuzz_source(dir, fmt::format("in{}.tar", static_cast<int>(kind)), SourceKind::kWebdataset,
                tar_seed(dir, kind, TarFilter::kNone), 700);
  }
  fuzz_source(dir, "in.tar.gz", SourceKind::kWebdataset,
              tar_seed(dir, TarKind::kPax, TarFilter::kGzip), 700);
  fuzz_source(dir, "in.tar.zst", SourceKind::kWebdataset,
              tar_seed(dir, TarKind::kUstar, TarFilter::kZstd), 700);
}

TEST_CASE("fuzz: caption files and the metadata of a folder") {
  const TempDir dir;
  std::filesystem::create_directories(dir / "in");
  mm::write_file_atomic(dir / "in/a.png", "x");
  std::mt19937_64 random(3);
  for (int round = fuzz_rounds(500); round > 0; --round) {
    {
      mm::File file = mm::File::create(dir / "in/a.txt");
      file.write(mutate("\xEF\xBB\xBF One \xE5\x8C\x97 cat.\r\nmore\n", random));
    }
    CHECK(read_hostile({.kind = SourceKind::kFolder, .path = dir / "in", .kohya = round % 2 == 0},
                       2) == 1);
  }
}
