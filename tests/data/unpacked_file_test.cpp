#include "lib/data/unpacked_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/data/text_stream.h"
#include "tests/data/source_reading.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

using AddFilter = int (*)(archive*);

void write_packed(const std::filesystem::path& path, std::string_view text, AddFilter add_filter) {
  archive* out = archive_write_new();
  add_filter(out);
  archive_write_set_format_raw(out);
  archive_write_open_filename(out, path.c_str());
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(out, entry);
  archive_write_data(out, text.data(), text.size());
  archive_entry_free(entry);
  archive_write_free(out);
}

std::vector<size_t> line_lengths(const std::filesystem::path& path) {
  TextStream in(path);
  std::vector<size_t> lengths;
  for (std::string line; read_line(in, line);) lengths.push_back(line.size());
  return lengths;
}

/// Letters that do not compress away, so that half of the packed file is half of the text.
std::string noise(size_t size) {
  std::string text(size, ' ');
  uint32_t state = 1;
  for (char& letter : text) {
    state = state * 1664525 + 1013904223;
    letter = static_cast<char>('!' + (state >> 24) % 90);
  }
  return text;
}

}  // namespace

TEST_CASE("unpacked file: gzip, Zstandard, xz and bzip2 are read as their text, cut ones refused") {
  const TempDir dir;
  const std::string text = "\xEF\xBB\xBF!\n" + noise(1'200'000) + "\r\nlast";
  for (const AddFilter filter : {&archive_write_add_filter_gzip, &archive_write_add_filter_zstd,
                                 &archive_write_add_filter_xz, &archive_write_add_filter_bzip2}) {
    write_packed(dir / "t", text, filter);
    CHECK(is_compressed(dir / "t"));
    CHECK(line_lengths(dir / "t") == std::vector<size_t>{1, 1'200'000, 4});
    const std::string whole = mm::read_file(dir / "t");
    mm::write_file_atomic(dir / "cut", std::string_view(whole).substr(0, whole.size() / 2));
    CHECK_THROWS_AS(line_lengths(dir / "cut"), mm::DataError);
  }
  mm::write_file_atomic(dir / "plain", text);
  CHECK(!is_compressed(dir / "plain"));
}

TEST_CASE("unpacked file: rows, tables and arrays may be compressed, their kind is seen inside") {
  const TempDir dir;
  const auto rows_of = [&](const std::string& name, std::string_view text) {
    write_packed(dir / name, text, &archive_write_add_filter_gzip);
    return read_all({.kind = sniff_source(dir / name), .path = dir / name});
  };
  CHECK(answer(rows_of("rows.jsonl.gz", R"({"image": "a.png", "text": "cat"})").at(0)) == "cat");
  CHECK(answer(rows_of("rows.gz", R"([{"image": "a.png", "text": "dog"}])").at(0)) == "dog");
  CHECK(answer(rows_of("table", "image,text\na.png,owl\n").at(0)) == "owl");
  CHECK(sniff_source(dir / "table") == SourceKind::kCsv);
  // A whole head of gzip with nothing behind it that could be unpacked.
  mm::write_file_atomic(dir / "broken.gz",
                        std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + "????????");
  CHECK_THROWS_AS(sniff_source(dir / "broken.gz"), mm::DataError);
}
