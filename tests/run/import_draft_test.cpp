#include "lib/run/import_draft.h"

#include <doctest/doctest.h>

#include "lib/base/config.h"
#include "lib/base/error.h"

using mm::run::RecipeDraft;

TEST_CASE("RecipeDraft: tables in a reader's order, a stage's tables on one line each") {
  RecipeDraft draft;
  draft.set("stage.lr.projector", "1e-3");
  draft.set("stage.steps", "5");
  draft.set("stage.name", "\"one\"");
  draft.set("loader.threads", "2");
  draft.set("run.seed", "1", "why");
  draft.set("stage.lr.language", "1e-4");
  CHECK(draft.text({"head", "", "  command"}) ==
        "# head\n#\n#   command\n"
        "\n[run]\nseed = 1  # why\n"
        "\n[loader]\nthreads = 2\n"
        "\n[[stage]]\nname = \"one\"\nsteps = 5\n"
        "lr = { projector = 1e-3, language = 1e-4 }\n");
}

TEST_CASE("RecipeDraft: a key set again has its last value, one left out is a comment") {
  RecipeDraft draft;
  draft.set("run.seed", "1", "first");
  draft.set("run.seed", "2");
  draft.leave_out("stage.steps", "not known");
  draft.leave_out("stage.schedule.warmup_steps", "nor this");
  CHECK(draft.get("run.seed") == "2");
  CHECK_FALSE(draft.get("stage.steps").has_value());
  CHECK_FALSE(draft.get("run.other").has_value());
  CHECK(draft.text({}) ==
        "\n[run]\nseed = 2\n\n[[stage]]\n# steps = ?  # not known\n"
        "# schedule.warmup_steps = ?  # nor this\n");
  draft.set("stage.steps", "7");
  CHECK(draft.get("stage.steps") == "7");
  CHECK_THROWS_AS(draft.set("loose", "1"), mm::Error);
}

TEST_CASE("RecipeDraft: long remarks are broken, commands are not, control bytes are shown") {
  RecipeDraft draft;
  draft.set("run.seed", "1", "a\nb = 2\x01");
  std::string words = "note:";
  for (int i = 0; i < 60; ++i) words += " word";
  const std::string command = "  run " + std::string(200, 'x') + " y";
  const std::string text = draft.text({words, command, std::string(300, 'z'), "c\nd = 3"});
  CHECK(text.find("# note: word") == 0);
  CHECK(text.find("\n#   word") != std::string::npos);
  CHECK(text.find("# " + command + "\n") != std::string::npos);
  CHECK(text.find("# " + std::string(300, 'z') + "\n") != std::string::npos);
  CHECK(text.find("# c\\nd = 3\n") != std::string::npos);
  mm::ConfigDocument document = mm::ConfigDocument::parse(text, "x.toml");
  mm::ConfigTable root = document.root();
  CHECK(root.table("run").get_int("seed") == 1);
  root.array_of_tables("stage");
  CHECK_NOTHROW(root.finish());
}
