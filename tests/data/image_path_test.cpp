#include "lib/data/image_path.h"

#include <doctest/doctest.h>

#include "lib/base/file.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

TEST_CASE("image path: nothing leaves the root") {
  const TempDir dir;
  fs::create_directories(dir / "root/in");
  mm::write_file_atomic(dir / "root/in/a.png", "x");
  mm::write_file_atomic(dir / "secret.png", "x");
  const auto root = dir / "root";
  const auto kind = [&](std::string_view path) {
    const auto found = resolve_image_path(root, path);
    return found ? "" : found.failure().kind;
  };
  CHECK(kind("in/a.png") == "");
  CHECK(kind("in/../in/./a.png") == "");
  CHECK(kind("in\\a.png") == "");
  CHECK(kind("../secret.png") == "outside_root");
  CHECK(kind("in/../../secret.png") == "outside_root");
  CHECK(kind("..\\secret.png") == "outside_root");
  CHECK(kind((dir / "secret.png").string()) == "outside_root");
  CHECK(kind("C:\\secret.png") == "outside_root");
  CHECK(kind("") == "bad_name");
  CHECK(kind(std::string_view("in/a.png\0x", 10)) == "bad_name");
  CHECK(kind("in") == "missing");
  CHECK(kind("no.png") == "missing");
}

TEST_CASE("image path: links stay inside the root unless they may lead anywhere") {
  const TempDir dir;
  fs::create_directories(dir / "root/in");
  mm::write_file_atomic(dir / "root/in/a.png", "x");
  mm::write_file_atomic(dir / "secret.png", "x");
  fs::create_symlink("in/a.png", dir / "root/inner.png");
  fs::create_symlink(dir / "secret.png", dir / "root/outer.png");
  fs::create_directory_symlink(dir.path(), dir / "root/up");
  const auto root = dir / "root";
  CHECK(resolve_image_path(root, "inner.png").ok());
  for (const char* name : {"outer.png", "up/secret.png"}) {
    CHECK(resolve_image_path(root, name).failure().kind == "outside_root");
    CHECK(resolve_image_path(root, name, Links::kAnywhere).ok());
  }
  CHECK(resolve_image_path(root, "up/root/in/a.png").ok());
}

TEST_CASE("image path: accents are found composed or taken apart") {
  const TempDir dir;
  fs::create_directories(dir / "root");
  mm::write_file_atomic(dir / "root/caf\u00e9.png", "x");
  mm::write_file_atomic(dir / "root/nin\u0303o.png", "x");
  for (const char* name :
       {"caf\u00e9.png", "cafe\u0301.png", "nin\u0303o.png", "ni\u00f1o.png", ".\\ni\u00f1o.png"}) {
    CAPTURE(name);
    CHECK(resolve_image_path(dir / "root", name).ok());
  }
  CHECK(resolve_image_path(dir / "root", "nino.png").failure().kind == "missing");
}
