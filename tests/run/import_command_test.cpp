#include "lib/run/import_command.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

using namespace mm::run;

namespace {

TrainCommand find(const std::string& text, int number = 0) {
  return find_train_command(read_shell(text, {.origin = "x.sh", .variables = {}, .arguments = {}}),
                            number, "x.sh");
}

std::optional<int64_t> world(const std::string& launcher) {
  return find(launcher + " train.py --model_name_or_path m").world;
}

}  // namespace

TEST_CASE("find_train_command: program, flags of either form, values that look like flags") {
  const TrainCommand command = find(
      "python setup.py install\necho train.py --lr 1\n"
      "deepspeed --num_gpus 8 llava/train/train_mem.py stray --model_name_or_path m --layer -2 "
      "--data-path=a=b --list 1 2 3 --bf16 --name \"\"");
  CHECK(command.line == 3);
  CHECK(command.program == "llava/train/train_mem.py");
  CHECK(command.strays == std::vector<std::string>{"stray"});
  REQUIRE(command.flags.size() == 6);
  CHECK(command.flags[1].values == std::vector<std::string>{"-2"});
  CHECK(command.flags[2].flag == "--data-path");
  CHECK(command.flags[2].key == "data_path");
  CHECK(command.flags[2].value() == "a=b");
  CHECK(command.flags[3].value() == "1 2 3");
  CHECK(command.flags[4].values.empty());
  CHECK(command.flags[5].values == std::vector<std::string>{""});
}

TEST_CASE("find_train_command: each launcher's count of processes") {
  CHECK(world("deepspeed --num_gpus 8") == 8);
  CHECK(world("deepspeed --num_nodes 2 --num_gpus=4") == 8);
  CHECK(world("deepspeed --include localhost:0,1,2") == 3);
  CHECK(world("deepspeed --include 'a:0,1@b:0,1,2,3'") == 6);
  CHECK(world("torchrun --nproc_per_node 4 --nnodes 2") == 8);
  CHECK(world("python -m torch.distributed.run --nproc-per-node=2") == 2);
  CHECK(world("accelerate launch --num_processes 16") == 16);
  CHECK(world("srun --nodes 2 --ntasks-per-node 8 python") == 16);
  for (const char* unknown :
       {"deepspeed", "python", "deepspeed --include host",
        "torchrun "
        "--nproc_per_node gpu",
        "torchrun --nproc_per_node 8 --nnodes $N", "torchrun --nproc_per_node 8 --nnodes 1:4"})
    CHECK_FALSE(world(unknown).has_value());
}

TEST_CASE("find_train_command: a module, bare flags") {
  const TrainCommand module = find(
      "python -m torch.distributed.run --nproc_per_node 2 -m llava.train.train_mem "
      "--model_name_or_path m");
  CHECK(module.program == "llava.train.train_mem");
  CHECK(module.world == 2);
  const TrainCommand bare = find("# flags\n--micro-batch-size 1 \\\n--lr 1e-3\n");
  CHECK(bare.program.empty());
  CHECK(bare.flags.size() == 2);
}

TEST_CASE("find_train_command: none, several, and a number that is not there") {
  const std::string two =
      "run train.py --model_name_or_path a\nrun train.py --model_name_or_path b\n";
  CHECK(find(two, 2).flags[0].value() == "b");
  CHECK_THROWS_WITH_AS(find(two),
                       "x.sh: 2 training commands, at lines 1, 2; choose one with "
                       "--command 1 to 2",
                       mm::Error);
  CHECK_THROWS_AS(find(two, 3), mm::Error);
  CHECK_THROWS_AS(find("ls\n"), mm::Error);
  CHECK_THROWS_AS(find("python eval.py --temperature 0\n"), mm::Error);
  CHECK_THROWS_AS(find(""), mm::Error);
}
