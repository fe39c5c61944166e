#include "lib/health/xid_table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/health/kernel_events.h"
#include "tests/health/planted_node.h"

using namespace mm::health;

namespace {

struct Expected {
  std::vector<int> ids;
  Level level;
  const char* code;
  const char* action_begin;
};

// Written from NVIDIA's catalogue a second time, not from the file under test.
const std::vector<Expected> kRows = {
    {{8,  11, 13,  25,  31,  32,  39,  40,  41,  60,  68,  69,  70, 71,
      72, 80, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 139},
     Level::kWarn,
     "F14",
     "restart the ranks on the same node"},
    {{37, 38, 43, 44, 66, 67, 141}, Level::kWarn, "F14", "none for itself"},
    {{45}, Level::kWarn, "F14", "look for the Xid before it"},
    {{46, 62, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158},
     Level::kBad,
     "F13",
     "exclude the node; drain it for a GPU reset"},
    {{48, 171, 172}, Level::kBad, "F15", "with Xid 94: restart"},
    {{63}, Level::kWarn, "F15", "leave the node at the next save"},
    {{64}, Level::kBad, "F15", "exclude the node"},
    {{74}, Level::kBad, "F12", "exclude the node"},
    {{144, 145, 146, 147, 148, 150}, Level::kWarn, "F12", "count by link"},
    {{79}, Level::kBad, "F13", "exclude the node at once"},
    {{92}, Level::kWarn, "F15", "none now"},
    {{94}, Level::kWarn, "F15", "restart the rank"},
    {{95}, Level::kBad, "F13", "exclude the node"},
    {{121}, Level::kWarn, "F12", "none"},
    {{137, 149}, Level::kWarn, "F12", "look at the peer GPU first"},
    {{151}, Level::kBad, "F13", "exclude the node"},
    {{154}, Level::kBad, "F13", "follow the action"},
    {{157, 160, 161}, Level::kWarn, "F15", "none now"}};

}  // namespace

TEST_CASE("Xid table: every row is found in a kernel line, with its level and action") {
  const XidTable table = load_xid_table();
  size_t known = 0;
  for (const Expected& row : kRows) {
    for (const int id : row.ids) {
      CAPTURE(id);
      const auto found = judge_kernel_line(
          fmt::format("NVRM: Xid (PCI:0000:5b:00): {}, pid='<unknown>', text", id), table);
      REQUIRE(found);
      CHECK(found->level == row.level);
      CHECK(found->code == row.code);
      CHECK(found->action.starts_with(row.action_begin));
      CHECK(found->where == "GPU 0000:5b:00");
      CHECK(found->what.starts_with(fmt::format("Xid {}: ", id)));
      ++known;
    }
  }
  CHECK(table.size() == known);
}

TEST_CASE("Xid table: an unknown Xid warns, a fatal NVLink line is bad, other lines say nothing") {
  const XidTable table = load_xid_table();
  CHECK(judge_kernel_line("NVRM: Xid (PCI:0000:5b:00): 999, x", table)->level == Level::kWarn);
  CHECK(judge_kernel_line("NVRM: Xid (PCI:0000:5b:00): 145, RLW Fatal, Link 3", table)->level ==
        Level::kBad);
  CHECK_FALSE(judge_kernel_line("NVRM: GPU 0000:5b:00.0: RmInitAdapter ok", table));
  CHECK_FALSE(parse_xid("NVRM: Xid (PCI:0000:5b:00"));
  CHECK_FALSE(parse_xid("NVRM: Xid (PCI:0000:5b:00): x"));
}

TEST_CASE("Xid table: a double-bit error that was contained leaves the node usable") {
  const XidTable table = load_xid_table();
  const auto judged = [&](std::vector<int> xids) {
    KernelLog log{.checked = true};
    for (const int xid : xids)
      log.lines.push_back({1.0, fmt::format("NVRM: Xid (PCI:0000:5b:00): {}, x", xid)});
    return judge_kernel_log(log, table, {}).front().level;
  };
  CHECK(judged({48}) == Level::kBad);
  CHECK(judged({48, 94}) == Level::kWarn);
  CHECK(judged({48, 94, 95}) == Level::kBad);
}

TEST_CASE("Xid table: another file replaces the built-in one; a broken one is refused") {
  const test::PlantedTree tree;
  tree.plant("x.toml",
             "source = 's'\n[[xid]]\nids = '13'\nwhat = 'w'\nnvidia = 'N'\nlevel = 'bad'\ncode = "
             "'F13'\naction = 'a'\n");
  const XidTable table = load_xid_table(tree.root() / "x.toml");
  CHECK(table.size() == 1);
  CHECK(table.at(13).level == Level::kBad);
  tree.plant("y.toml",
             "source = 's'\n[[xid]]\nids = '13-x'\nwhat = 'w'\nnvidia = 'N'\nlevel = "
             "'bad'\ncode = 'F13'\naction = 'a'\n");
  CHECK_THROWS_AS(load_xid_table(tree.root() / "y.toml"), mm::UsageError);
  CHECK(parse_id_ranges("8, 39-41") == std::vector<int>{8, 39, 40, 41});
  CHECK_THROWS_AS(parse_id_ranges("9-3"), mm::DataError);
}
