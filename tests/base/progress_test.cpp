#include "lib/base/progress.h"

#include <doctest/doctest.h>

#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

namespace {

struct Shown {
  mm::test::TempDir dir;
  mm::ManualClock clock;
  std::FILE* file = std::fopen((dir / "out").c_str(), "w");

  mm::Progress::Options options(bool terminal) {
    mm::Progress::Options o;
    o.label = "pack";
    o.unit = "samples";
    o.total = 1000;
    o.out = file;
    o.terminal = terminal;
    o.clock = &clock;
    return o;
  }
  std::string text() {
    std::fclose(file);
    return mm::read_file(dir / "out");
  }
};

}  // namespace

TEST_CASE("Progress: plain lines every 30 s and one at the end when there is no terminal") {
  Shown shown;
  {
    mm::Progress progress(shown.options(false));
    for (int second = 1; second <= 65; ++second) {
      shown.clock.advance(1);
      progress.add(10);
    }
    progress.finish();
    progress.finish();
    progress.add(5);
  }
  CHECK(shown.text() ==
        "pack: 300/1000 samples 30% 10/s 1:10 left\n"
        "pack: 600/1000 samples 60% 10/s 0:40 left\n"
        "pack: 650/1000 samples 65% 10/s 0:35 left\n");
}

TEST_CASE("Progress: one line that rewrites itself on a terminal") {
  Shown shown;
  {
    mm::Progress progress(shown.options(true));
    shown.clock.advance(0.1);
    progress.add(1);
    shown.clock.advance(0.4);
    progress.add(1);
    shown.clock.advance(0.5);
    progress.add(998);
    progress.finish();
  }
  CHECK(shown.text() ==
        "\rpack: 2/1000 samples 0% 4.00/s 4:10 left\x1b[K"
        "\rpack: 1000/1000 samples 100% 1000/s in 0:01\x1b[K"
        "\rpack: 1000/1000 samples 100% 1000/s in 0:01\x1b[K\n");
}

TEST_CASE("Progress: work that is left early ends its line, quiet prints nothing") {
  Shown open, quiet;
  {
    mm::Progress::Options unknown = open.options(true);
    unknown.total = 0;
    mm::Progress left(unknown);
    open.clock.advance(1);
    left.add(20);
    mm::Progress::Options silent = quiet.options(true);
    silent.quiet = true;
    mm::Progress nothing(silent);
    quiet.clock.advance(100);
    nothing.add(10);
    nothing.finish();
  }
  CHECK(open.text() == "\rpack: 20 samples 20/s in 0:01\x1b[K\n");
  CHECK(quiet.text().empty());
}
