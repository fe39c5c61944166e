#include <cstdio>

#include "apps/mmshard/verbs.h"
#include "apps/refusal.h"
#include "lib/base/cli.h"
#include "lib/base/exit_code.h"

int main(int argc, char** argv) {
  CLI::App app{"Packs image-text data into checked shards, and plans epochs over them.", "mmshard"};
  app.require_subcommand(1);
  app.set_version_flag("--version", MM_VERSION);
  mmshard::Body body;
  mmshard::add_pack(app, body);
  mmshard::add_plan(app, body);
  mmshard::add_info(app, body);
  mmshard::add_show(app, body);
  mmshard::add_verify(app, body);
  mmshard::add_export(app, body);
  mmshard::add_encode(app, body);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s\n", mm::refusal(app, error, argc, argv).c_str());
    return static_cast<int>(mm::ExitCode::kUsage);
  }
  return mm::run_cli("mmshard", body);
}
