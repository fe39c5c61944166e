#include <cstdio>

#include "apps/mmprobe/verbs.h"
#include "apps/refusal.h"
#include "lib/base/cli.h"
#include "lib/base/exit_code.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Says whether a node, a link or a cluster is fit to train, and what it could not check.",
      "mmprobe");
  app.set_version_flag("--version", "mmprobe " MM_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  mmprobe node\n"
      "  mmprobe node --sku h100-8 --path /store --json\n"
      "  mmprobe nccl all_reduce --nproc 8\n"
      "Exit codes: 0 nothing bad was found, 2 usage, 69 unhealthy; docs/operations.md");
  mm::mmprobe::Action action;
  mm::mmprobe::add_node(app, action);
  mm::mmprobe::add_nccl(app, action);
  mm::mmprobe::add_pairs(app, action);
  mm::mmprobe::add_fleet(app, action);
  mm::mmprobe::add_topo(app, action);
  mm::mmprobe::add_watch(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s\n", mm::refusal(app, error, argc, argv).c_str());
    return static_cast<int>(mm::ExitCode::kUsage);
  }
  return mm::run_cli("mmprobe", action);
}
