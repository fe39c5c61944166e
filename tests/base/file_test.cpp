#include "lib/base/file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>

#include "lib/base/error.h"
#include "tests/base/temp_dir.h"

using mm::DataError;
using mm::File;
using mm::IoError;
using mm::MappedFile;
using mm::test::message_of;
using mm::test::TempDir;

TEST_CASE("read_file: what write_file_atomic wrote, byte for byte, with nothing left aside") {
  const TempDir dir;
  std::string content("a\0b\n\xff", 5);
  for (int i = 0; i < 18; ++i) content += content;
  mm::write_file_atomic(dir / "x", "old");
  mm::write_file_atomic(dir / "x", content);
  CHECK(mm::read_file(dir / "x") == content);
  size_t entries = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(dir.path())) ++entries;
  CHECK(entries == 1);
}

TEST_CASE("read_file: empty files, and files of /proc that claim no size") {
  const TempDir dir;
  mm::write_file_atomic(dir / "empty", "");
  CHECK(mm::read_file(dir / "empty").empty());
  CHECK(mm::read_file("/proc/self/status").find("Pid:") != std::string::npos);
}

TEST_CASE("read_file: errors name the path, the reason and the limit") {
  const TempDir dir;
  const std::string missing = (dir / "none").string();
  CHECK(message_of<IoError>([&] { mm::read_file(missing); }) ==
        missing + ": cannot open: No such file or directory");
  CHECK(message_of<IoError>([&] { mm::read_file(dir.path()); }) ==
        dir.path().string() + ": cannot read: Is a directory");
  mm::write_file_atomic(dir / "four", "four");
  CHECK(mm::read_file(dir / "four", 4) == "four");
  CHECK(message_of<DataError>([&] { mm::read_file(dir / "four", 3); }) ==
        (dir / "four").string() + ": 4 bytes, expected at most 3");
}

TEST_CASE("write_file_atomic: a failure leaves the target as it was and no temporary file") {
  const TempDir dir;
  std::filesystem::create_directory(dir / "target");
  mm::write_file_atomic(dir / "target" / "inside", "kept");
  CHECK_THROWS_AS(mm::write_file_atomic(dir / "target", "text"), IoError);
  CHECK(mm::read_file(dir / "target" / "inside") == "kept");
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()),
                      std::filesystem::directory_iterator()) == 1);
  CHECK_THROWS_AS(mm::write_file_atomic(dir / "no such" / "x", "text"), IoError);
}

TEST_CASE("File: positioned reads, and truncation is a DataError with the place") {
  const TempDir dir;
  {
    File file = File::create(dir / "f");
    file.write("hello");
    file.sync();
    file.close();
    File more = File::create(dir / "f", /*append=*/true);
    more.write(" world");
  }
  const File file = File::open_read(dir / "f");
  CHECK(file.size_bytes() == 11);
  std::array<std::byte, 5> out{};
  file.read_at(6, out);
  CHECK(std::string(reinterpret_cast<const char*>(out.data()), 5) == "world");
  CHECK(message_of<DataError>([&] { file.read_at(8, out); }) ==
        (dir / "f").string() + ": truncated: 5 bytes wanted at byte 8, the file ends after 3");
  file.read_at(100, std::span<std::byte>());
}

TEST_CASE("File: moving hands over the descriptor, the old one is closed once") {
  const TempDir dir;
  File a = File::create(dir / "a");
  const int descriptor = a.descriptor();
  File b = std::move(a);
  CHECK(b.descriptor() == descriptor);
  b.write("x");
  b.close();
  b.close();
  CHECK(mm::read_file(dir / "a") == "x");
}

TEST_CASE("MappedFile: the bytes of the file, and none for an empty one") {
  const TempDir dir;
  mm::write_file_atomic(dir / "m", "mapped");
  mm::write_file_atomic(dir / "empty", "");
  MappedFile map(dir / "m");
  const MappedFile moved = std::move(map);
  REQUIRE(moved.bytes().size() == 6);
  CHECK(static_cast<char>(moved.bytes()[5]) == 'd');
  CHECK(MappedFile(dir / "empty").bytes().empty());
  CHECK_THROWS_AS(MappedFile(dir / "none"), IoError);
}

TEST_CASE("fsync_directory: accepts a directory and the empty path, refuses a missing one") {
  const TempDir dir;
  mm::fsync_directory(dir.path());
  mm::fsync_directory("");
  CHECK_THROWS_AS(mm::fsync_directory(dir / "none"), IoError);
}
