#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/dist/thread_group.h"
#include "lib/model/cpu_allocator.h"
#include "lib/run/encode_dataset.h"
#include "lib/run/trainer.h"
#include "tools/bench_latents/toy_pictures.h"
#include "tools/bench_llava/process_cost.h"
#include "tools/bench_main.h"

namespace fs = std::filesystem;

namespace {

using namespace mm;

struct Options {
  int64_t pictures = 8, side = 128, hidden = 384, layers = 12;
  int steps = 10, threads = 2, turns = 2;
};

/// Goes away with its owner.
struct TempDir {
  fs::path path = fs::temp_directory_path() / fmt::format("bench_latents_{}", getpid());
  ~TempDir() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

/// A class-conditional DiT of patches of 2 on latents of an eighth of the side, in fp32.
fs::path write_recipe(const fs::path& directory, const Options& o) {
  const fs::path path = directory / "recipe.toml";
  write_file_atomic(path, fmt::format(R"([run]
log_every = 1000000
[model]
family = "dit"
vae = "vae"
[model.transformer]
hidden = {}
layers = {}
heads = {}
patch = 2
grid_side = {}
[precision]
compute = "fp32"
[[stage]]
name = "draw"
data = "set"
steps = {}
batch_pixels = {}
packs_per_step = 1
lr = {{ transformer = 1e-4 }}
)",
                                      o.hidden, o.layers, o.hidden / 64, o.side / 16, o.steps + 1,
                                      o.pictures * o.side * o.side));
  return path;
}

/// The run's steps but the first, which warms up.
struct Measured {
  double step_ms = 0, loss = 0;
};
Measured train(const run::Recipe& recipe, const fs::path& directory) {
  run::Comm comm{.host = "bench",
                 .data = std::move(dist::make_thread_groups(1, {.name = "data"}).front()),
                 .control = std::move(dist::make_thread_groups(1, {.name = "control"}).front())};
  run::Trainer trainer(recipe, comm, {.run_directory = directory, .keep_records = true});
  trainer.run();
  std::vector<double> times;
  for (const run::StepRecord& record : trainer.records()) times.push_back(record.step_ms);
  times.erase(times.begin());
  return {bench::median(times), trainer.records().back().loss};
}

void run_bench(const Options& options) {
  model::install_cpu_allocator(int64_t{4} << 30);
  const TempDir dir;
  const fs::path set = bench::pack_noise(dir.path, 8 * options.pictures, options.side);
  const fs::path vae = bench::write_random_vae(dir.path / "vae"), stored = dir.path / "stored";
  run::encode_dataset({.dataset = set, .encoders = {.vae = vae}, .output = stored});
  bench::start_tensors(options.threads);  // encode took one a picture
  const fs::path recipe = write_recipe(dir.path, options);
  fmt::print("{}\nDiT of {} layers of {} in fp32, {} pictures of {} x {} a step, median of {}\n",
             bench::hardware(), options.layers, options.hidden, options.pictures, options.side,
             options.side, options.steps);
  for (int turn = 0; turn < options.turns; ++turn) {
    for (const bool online : {true, false}) {
      std::vector<std::string> keys;
      if (!online) keys.push_back("stage.0.encoded=" + stored.string());
      const Measured m =
          train(run::read_recipe(recipe, keys), dir.path / fmt::format("run-{}-{}", online, turn));
      fmt::print("latents {:<18} {:>8.0f} ms a step, loss of the last {:.9g}\n",
                 online ? "encoded on the way" : "stored", m.step_ms, m.loss);
    }
  }
}

void declare_options(CLI::App& app, Options& options) {
  bench::add_number<int64_t>(app, "--pictures", options.pictures, "Pictures a step", 1, 1024);
  bench::add_number<int64_t>(app, "--side", options.side, "Pixels, a multiple of 16", 16, 2048);
  bench::add_number<int64_t>(app, "--hidden", options.hidden, "Width, heads of 64", 64, 4096);
  bench::add_number<int64_t>(app, "--layers", options.layers, "Transformer layers", 1, 64);
  bench::add_number(app, "--turns", options.turns, "Runs of each way, in turn", 1, 100);
  bench::add_steps(app, options.steps);
  bench::add_threads(app, options.threads);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main<Options>(
      {argc, argv, "bench_latents",
       "Wall time of training steps on latents that are stored and on latents that a frozen "
       "autoencoder of Stable Diffusion's widths makes on the way.\nExample: OMP_NUM_THREADS=2 "
       "bench_latents --pictures 8 --side 128"},
      declare_options, run_bench);
}
