#include "lib/run/import_recipe.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/run/import_command.h"
#include "tests/run/import_check.h"

using namespace mm::run;
using namespace mm::run::test;

namespace {

/// The shortest LLaVA command and more flags behind it.
ImportedRecipe llava(const std::string& more, ImportOptions options = {}) {
  return import_script(
      "deepspeed --num_gpus 8 train.py --model_name_or_path m --data_path d.json " + more, "x.sh",
      options);
}

std::string failure(const std::string& more) {
  try {
    llava(more);
  } catch (const mm::Error& error) {
    CHECK(error.exit_code() == mm::ExitCode::kDataInvalid);
    const std::string what = error.what();
    CHECK(what.find('\n') == std::string::npos);
    return what;
  }
  return "";
}

}  // namespace

TEST_CASE("import_recipe: scripts with published hyper-parameters give the recipes kept here") {
  struct Case {
    const char* script;
    ImportOptions options;
  };
  ImportOptions next{.world = 128, .samples = 760'000};
  ImportOptions lora;
  lora.arguments = {"lora.sh", "lmsys/vicuna-7b-v1.5"};
  ImportOptions megatron;
  megatron.variables = {{"STORE", "/store"}};
  for (const Case& c :
       {Case{"stage1.sh", {}}, Case{"stage2.sh", {}}, Case{"lora.sh", lora}, Case{"next.sh", next},
        Case{"megatron_pretrain.sh", megatron}, Case{"megatron_sft.args", {}}}) {
    CAPTURE(c.script);
    const std::filesystem::path script = import_folder() / c.script;
    const ImportedRecipe imported = import_script(mm::read_file(script), script, c.options);
    CHECK(imported.toml == mm::read_file(script.string() + ".toml"));
    CHECK(imported.report.missing.empty());
    CHECK_NOTHROW(read_back(imported));
  }
}

TEST_CASE("import_recipe: every flag of a script stands in the report exactly once") {
  for (const char* name : {"stage1.sh", "stage2.sh", "lora.sh", "next.sh", "megatron_pretrain.sh",
                           "megatron_sft.args"}) {
    CAPTURE(name);
    const std::filesystem::path script = import_folder() / name;
    const std::string text = mm::read_file(script);
    const ImportReport report = import_script(text, script, {}).report;
    std::multiset<std::string> told;
    for (const auto& m : report.mapped) told.insert(m.flag);
    for (const auto& u : report.unmapped) {
      told.insert(u.flag);
      CHECK_FALSE(u.reason.empty());
    }
    const TrainCommand command = find_train_command(
        read_shell(text, {.origin = name, .variables = {}, .arguments = {}}), 0, name);
    CHECK(command.flags.size() > 15);
    for (const ImportFlag& flag : command.flags) {
      CAPTURE(flag.flag);
      CHECK(told.count(flag.flag) == 1);
    }
  }
}

TEST_CASE("import_recipe: batch, steps and warm-up are counted as the trainer counts them") {
  struct Case {
    int64_t samples;
    const char* flags;
    int64_t steps, warmup;
  };
  // Batches of an epoch are rounded up, accumulations down, the warm-up up.
  for (const Case& c : {
           Case{558'128, "--per_device_train_batch_size 32 --num_train_epochs 1", 2181, 66},
           Case{558'128,
                "--per_device_train_batch_size 8 --gradient_accumulation_steps 4 "
                "--num_train_epochs 1",
                2180, 66},
           Case{665'298, "--per_device_train_batch_size 16 --num_train_epochs 1", 5198, 156},
           Case{665'298, "--per_device_train_batch_size 16 --num_train_epochs 0.5", 2599, 78},
           Case{640, "", 30, 1},  // 8 a device, 3 epochs
           Case{640, "--max_steps 7 --num_train_epochs 9", 7, 1},
           Case{1, "--gradient_accumulation_steps 4 --num_train_epochs 1", 1, 1},
       }) {
    CAPTURE(c.flags);
    const Recipe recipe =
        read_back(llava(std::string(c.flags) + " --warmup_ratio 0.03", {.samples = c.samples}));
    CHECK(recipe.stages[0].steps == c.steps);
    if (c.steps > 1) CHECK(recipe.stages[0].schedule.warmup_steps == c.warmup);
  }
}

TEST_CASE("import_recipe: what cannot be known is left out, so that a check refuses the recipe") {
  const ImportedRecipe no_samples = llava("--lr_scheduler_type cosine");
  REQUIRE(no_samples.report.missing.size() == 1);
  CHECK(no_samples.report.missing[0].key == "stage.steps");
  CHECK(no_samples.toml.find("# steps = ?") != std::string::npos);
  CHECK_THROWS_AS(read_back(no_samples), mm::Error);
  const ImportedRecipe no_world = import_script(
      "deepspeed train.py --model_name_or_path m --data_path d --max_steps 5", "x.sh", {});
  CHECK(no_world.report.missing.at(0).key == "stage.packs_per_step");
  const ImportedRecipe told =
      import_script("deepspeed train.py --model_name_or_path m --data_path d --max_steps 5", "x.sh",
                    {.world = 4});
  CHECK(read_back(told).stages[0].packs_per_step == 32);
}

TEST_CASE("import_recipe: without data the recipe names some that are not there, and says so") {
  for (const char* script : {"deepspeed --num_gpus 8 train.py --model_name_or_path m --max_steps 3",
                             "--global-batch-size 16 --lr 1e-3 --train-iters 9 --seq-length 64"}) {
    const ImportedRecipe imported = import_script(script, "x.sh", {});
    REQUIRE(imported.report.missing.size() == 1);
    CHECK(imported.report.missing[0].key == "stage.data");
    CHECK(imported.toml.find("# missing: stage.data: ") != std::string::npos);
    CHECK_NOTHROW(read_back(imported));
  }
}

TEST_CASE("import_recipe: a value that the script does not know is named, not guessed") {
  const ImportedRecipe imported = llava("--learning_rate $LR --run_name $RUN --max_steps 3");
  CHECK(reason(imported, "--learning_rate").find("${LR}") != std::string::npos);
  CHECK(reason(imported, "--run_name").find("names the directory") != std::string::npos);
  ImportOptions given;
  given.variables = {{"LR", "3e-5"}};
  CHECK(read_back(llava("--learning_rate $LR --max_steps 3", given)).stages[0].lr.at("language") ==
        3e-5);
}

TEST_CASE("import_recipe: without a known model the recipe names one that is not there") {
  const ImportedRecipe imported = import_script(
      "deepspeed --num_gpus 8 train.py --model_name_or_path $MODEL --max_steps 3", "x.sh", {});
  CHECK(imported.report.missing.at(0).key == "model.from");
  CHECK(read_back(imported).model.from.filename() == "MODEL");
}

TEST_CASE("import_recipe: freezing flags give the parts, each part its rate") {
  using Parts = std::map<std::string, double>;
  const auto rates = [](const std::string& flags) {
    const Recipe recipe = read_back(llava("--max_steps 3 --learning_rate 1e-3 " + flags));
    return recipe.stages[0].lr;
  };
  CHECK(rates("") == Parts{{"projector", 1e-3}, {"language", 1e-3}});
  CHECK(rates("--tune_mm_mlp_adapter True") == Parts{{"projector", 1e-3}});
  CHECK(rates("--freeze_backbone True") == Parts{{"projector", 1e-3}});
  CHECK(rates("--freeze_mm_mlp_adapter True") == Parts{{"language", 1e-3}});
  CHECK(rates("--mm_projector_lr 2e-5") == Parts{{"projector", 2e-5}, {"language", 1e-3}});
  CHECK(rates("--unfreeze_mm_vision_tower True --mm_vision_tower_lr 2e-6") ==
        Parts{{"vision", 2e-6}, {"projector", 1e-3}, {"language", 1e-3}});
  CHECK(rates("--mm_tunable_parts=mm_vision_tower,mm_language_model") ==
        Parts{{"vision", 1e-3}, {"language", 1e-3}});
  CHECK(failure("--freeze_backbone True --freeze_mm_mlp_adapter True").find("left to train") !=
        std::string::npos);
  CHECK(reason(llava("--mm_vision_tower_lr 1e-6"), "--mm_vision_tower_lr") ==
        "the tower is frozen");
}

TEST_CASE("import_recipe: the projector's layers are a key, those that are not here are told") {
  const auto projector = [](const std::string& kind) {
    return read_back(llava("--max_steps 3 --mm_projector_type " + kind)).model.projector;
  };
  CHECK(projector("linear") == "linear");
  CHECK(projector("mlp2x_gelu") == "mlp2x_gelu");
  const ImportedRecipe other = llava("--max_steps 3 --mm_projector_type mlp3x_gelu");
  CHECK(read_back(other).model.projector.empty());
  CHECK(reason(other, "--mm_projector_type").find("linear or mlp2x_gelu") != std::string::npos);
  const auto noted = [](const std::string& flags) {
    const std::vector<std::string> notes = llava("--max_steps 3 " + flags).report.notes;
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.starts_with("no --mm_projector_type");
    });
  };
  CHECK(noted("--vision_tower clip"));
  CHECK_FALSE(noted("--vision_tower clip --mm_projector_type linear"));
}

TEST_CASE("import_recipe: adapters on the language model, beside a projector that trains whole") {
  const auto recipe = [](const std::string& flags) {
    return read_back(llava("--max_steps 3 --learning_rate 2e-4 --lora_enable True " + flags));
  };
  const Recipe usual = recipe("--lora_r 128 --lora_alpha 256 --mm_projector_lr 2e-5");
  CHECK(usual.lora.rank == 128);
  CHECK(usual.lora.alpha == 256);
  CHECK(usual.lora.targets == std::map<std::string, std::vector<std::string>>{{"language", {"*"}}});
  CHECK(usual.stages[0].lr ==
        std::map<std::string, double>{{"projector", 2e-5}, {"language", 2e-4}});
  CHECK(recipe("").lora.rank == 64);  // the defaults of LLaVA's arguments
  CHECK(recipe("").lora.alpha == 16);
  CHECK(recipe("").lora.dropout == 0.05);
  CHECK(recipe("--lora_dropout 0.1").lora.dropout == 0.1);
  CHECK(recipe("--lora_dropout 0").lora.dropout == 0);
  CHECK(recipe("--lora_weight_path peft").lora.from.filename() == "peft");
  CHECK(recipe("--lora_weight_path ''").lora.from.empty());
  CHECK(recipe("--freeze_backbone True").lora.on());
  CHECK_FALSE(recipe("--tune_mm_mlp_adapter True").lora.on());
  CHECK_FALSE(read_back(llava("--max_steps 3 --lora_r 8")).lora.on());
  CHECK(failure("--lora_enable True --lora_r 0").find("from 1 to 8192") != std::string::npos);
}

TEST_CASE("import_recipe: what adapters here do not have is said") {
  const auto why = [](const std::string& flags, const std::string& flag) {
    return reason(llava("--lora_enable True " + flags), flag);
  };
  CHECK(why("--lora_bias all", "--lora_bias").find("frozen") != std::string::npos);
  CHECK(why("--lora_bias none", "--lora_bias").find("as here") == 0);
  CHECK(why("--lora_weight_path $W", "--lora_weight_path").find("${W}") != std::string::npos);
  CHECK(why("--tune_mm_mlp_adapter True", "--lora_enable").find("stay zero") != std::string::npos);
  CHECK(reason(llava("--lora_r 8"), "--lora_r") == "the run has no adapters");
  const auto noted = [](const std::string& flags, const std::string& word) {
    const std::vector<std::string> notes = llava("--lora_enable True " + flags).report.notes;
    return std::any_of(notes.begin(), notes.end(),
                       [&](const std::string& note) { return note.starts_with(word); });
  };
  CHECK(noted("--lora_weight_path peft", "lora_weight_path"));
  CHECK(noted("--mm_tunable_parts mm_language_model", "mm_tunable_parts"));
}

TEST_CASE("import_recipe: precision, recompute and the scale of fp16") {
  const auto recipe = [](const std::string& flags) {
    return read_back(llava("--max_steps 3 " + flags));
  };
  CHECK(recipe("--bf16 True").compute == "bf16");
  CHECK(recipe("--fp16 True").compute == "fp16");
  CHECK(recipe("").compute == "fp32");
  CHECK(recipe("--gradient_checkpointing True").recompute.mode == "block");
  CHECK(recipe("--gradient_checkpointing False").recompute.mode == "none");
  CHECK(reason(llava("--tf32 True"), "--tf32").find("fp32") != std::string::npos);
  CHECK(reason(llava("--bf16 True --tf32 True"), "--tf32").find("bf16") != std::string::npos);
}

TEST_CASE("import_recipe: shapes of the learning rate") {
  const auto schedule = [](const std::string& flags) {
    return read_back(llava("--max_steps 10 --warmup_steps 2 " + flags)).stages[0].schedule;
  };
  CHECK(schedule("--lr_scheduler_type cosine").kind == "cosine");
  CHECK(schedule("--lr_scheduler_type constant_with_warmup").kind == "constant");
  CHECK(schedule("").kind == "wsd");  // the trainer's default is linear
  CHECK(schedule("").decay_steps == 8);
  const ImportedRecipe lion = llava("--max_steps 3 --optim lion_32bit --adam_epsilon 1e-6");
  CHECK(read_back(lion).stages[0].optimizer == "lion");
  CHECK_FALSE(reason(lion, "--adam_epsilon").empty());
  CHECK_FALSE(reason(llava("--optim adafactor"), "--optim").empty());
  const ImportedRecipe other = llava("--lr_scheduler_type polynomial");
  CHECK(reason(other, "--lr_scheduler_type").find("no such shape") != std::string::npos);
}

TEST_CASE("import_recipe: pictures and texts become the command that packs them") {
  const auto command = [](const std::string& flags) { return llava(flags).report.commands.at(0); };
  CHECK(command("--version plain --vision_tower openai/clip-vit-large-patch14-336")
            .find("--template plain --geometry crop") == std::string::npos);
  const std::string square = command(
      "--version plain --vision_tower openai/clip-vit-large-patch14-336 --model_max_length 2048");
  for (const char* part : {"--template plain", "--geometry crop", "--image-side 336", "--patch 14",
                           "--max-length 2048", "--out packed/d"})
    CHECK_MESSAGE(square.find(part) != std::string::npos, part);
  CHECK(command("--image_aspect_ratio pad").find("--geometry pad") != std::string::npos);
  CHECK(
      command("--vision_tower google/siglip-so400m-patch14-384").find("squash --image-side 384") !=
      std::string::npos);
  CHECK(command("--vision_tower openai/clip-vit-large-patch14").find("--image-side 224") !=
        std::string::npos);
  CHECK(command("--image_aspect_ratio anyres --vision_tower clip-patch14-336 "
                "--image_grid_pinpoints '[(336, 672), (1008, 336)]'")
            .find("--grids 2x1,1x3") != std::string::npos);
  CHECK(command("--image_aspect_ratio anyres_max_9 --vision_tower clip-patch14-336 "
                "--image_grid_pinpoints '(1x1),...,(2x2)'")
            .find("--grids 1x1,1x2,2x1,2x2 --max-grid-tiles 9") != std::string::npos);
  for (const auto& [version, name] : std::map<std::string, std::string>{
           {"v1", "vicuna_v1"}, {"llava_llama_3", "llama3"}, {"qwen_1_5", "chatml"}})
    CHECK(command("--version " + version).find("--template " + name) != std::string::npos);
  const ImportedRecipe odd = llava("--version mpt --image_aspect_ratio anyres_max_many");
  CHECK(reason(odd, "--version").find("TOML") != std::string::npos);
  CHECK(reason(odd, "--image_aspect_ratio").find("no such geometry") == 0);
  CHECK(reason(llava("--image_aspect_ratio anyres --image_grid_pinpoints '(1x1),...,(60x60)'"),
               "--image_grid_pinpoints")
            .find("whole tiles") != std::string::npos);
}

TEST_CASE("import_recipe: saving, logging and loading") {
  const Recipe recipe = read_back(
      llava("--max_steps 10 --save_steps 50 --save_total_limit 5 --logging_steps 3 --seed 9 "
            "--dataloader_num_workers 6 --dataloader_prefetch_factor 2"));
  CHECK(recipe.checkpoint_every == 50);
  CHECK(recipe.checkpoint_keep == 5);
  CHECK(recipe.log_every == 3);
  CHECK(recipe.seed == 9);
  CHECK(recipe.loader_threads == 6);
  CHECK(recipe.loader_prefetch == 2);
  CHECK(read_back(llava("--max_steps 10 --save_strategy no")).checkpoint_every == 0);
  CHECK(read_back(llava("--num_train_epochs 2 --save_strategy epoch", {.samples = 640}))
            .checkpoint_every == 10);
}

TEST_CASE("import_recipe: saving by epochs counts those of the published sets") {
  const auto epochs = [](const std::string& file) {
    return import_script(
        "deepspeed --num_gpus 8 train.py --model_name_or_path m --num_train_epochs 3 "
        "--per_device_train_batch_size 16 --save_strategy epoch --save_steps 9 --data_path " +
            file,
        "x.sh", {});
  };
  const ImportedRecipe known = epochs("x/llava_v1_5_mix665k.json");
  CHECK(read_back(known).checkpoint_every == 5198);
  const auto& notes = known.report.notes;
  CHECK(std::count_if(notes.begin(), notes.end(), [](const std::string& note) {
          return note.find("665298 samples") != std::string::npos;
        }) == 1);
  const ImportedRecipe unknown = epochs("d.json");
  CHECK(reason(unknown, "--save_strategy").find("steps of an epoch are not known") !=
        std::string::npos);
}

TEST_CASE("import_recipe: of a flag given twice the last counts, and the report says so") {
  const ImportedRecipe imported = llava("--max_steps 10 --weight_decay 0.1 --weight-decay 0.2");
  CHECK(read_back(imported).stages[0].weight_decay == 0.2);
  CHECK(reason(imported, "--weight_decay").find("last one counts") != std::string::npos);
}

TEST_CASE("import_recipe: flags nobody knows, lost settings and needless ones are told apart") {
  const ImportedRecipe imported =
      llava("word --mm_dense_conector 2 --label_smoothing_factor 0.1 --report_to wandb --bits 4");
  const auto entry = [&](const std::string& flag) {
    const auto& all = imported.report.unmapped;
    return *std::find_if(all.begin(), all.end(), [&](const auto& u) { return u.flag == flag; });
  };
  CHECK(entry("--mm_dense_conector").reason.find("not a flag that this knows") == 0);
  CHECK_FALSE(entry("--label_smoothing_factor").needless);
  CHECK_FALSE(entry("--bits").needless);
  CHECK(entry("--report_to").needless);
  const mm::Json json = imported.report.to_json();
  CHECK(json.at("schema") == 1);
  CHECK(json.at("unmapped").size() == imported.report.unmapped.size());
  CHECK(reason(llava("--warmup_ration 0.1"), "--warmup_ration").find("not a flag") == 0);
}

TEST_CASE("import_recipe: wrong values are one line that names flag, value and what is expected") {
  CHECK(failure("--learning_rate fast")
            .find("--learning_rate fast: expected a number from 0 to 10") != std::string::npos);
  CHECK(failure("--learning_rate 1e9").find("expected a number") != std::string::npos);
  CHECK(failure("--learning_rate nan").find("expected a number") != std::string::npos);
  CHECK(failure("--per_device_train_batch_size 0").find("whole number") != std::string::npos);
  CHECK(failure("--per_device_train_batch_size 1048576").find("global batch") != std::string::npos);
  CHECK(failure("--model_max_length 99999999999999999999").find("whole number") !=
        std::string::npos);
  CHECK(failure("--num_train_epochs -1").find("expected a number from 0") != std::string::npos);
  CHECK(failure("--bf16 perhaps").find("expected True or False") != std::string::npos);
  CHECK(failure("--weight_decay").find("expected a value") != std::string::npos);
  CHECK(failure("--mm_tunable_parts nothing").find("mm_vision_tower") != std::string::npos);
  CHECK_THROWS_AS(import_recipe({.arguments = {"/nowhere.sh"}}), mm::Error);
  CHECK_THROWS_AS(import_recipe({}), mm::Error);
  CHECK_THROWS_AS(import_script("", "x.sh", {}), mm::Error);
}

TEST_CASE("import_recipe: text of a script cannot leave its comment or its string") {
  const ImportedRecipe imported = llava(
      "--max_steps 3 --output_dir 'a\nname = \"x\"' --vision_tower 'b\nseed = 3' --odd "
      "'\x01\xff\n'");
  const Recipe recipe = read_back(imported);
  CHECK(recipe.seed == 0);
  CHECK(recipe.stages[0].name == "finetune");
}

TEST_CASE("import_recipe: a damaged script is imported or refused in one line") {
  for (const char* name : {"lora.sh", "next.sh", "megatron_pretrain.sh"}) {
    const std::string text = mm::read_file(import_folder() / name);
    std::minstd_rand draw(7);
    for (int i = 0; i < 300; ++i) {
      std::string damaged = text;
      for (int k = 0; k < 4; ++k)
        damaged[draw() % damaged.size()] = "\"'$({)}\\ \n-=0x\xff"[draw() % 15];
      try {
        const ImportedRecipe imported = import_script(damaged, import_folder() / name, {});
        CHECK(imported.toml.find("[[stage]]") != std::string::npos);
      } catch (const mm::Error& error) {
        CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
      }
    }
  }
}
