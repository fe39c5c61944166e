#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/run/import_shell.h"

namespace mm::run {

/// One argument as a training program gets it: "--lr 1e-3", "--bf16", "--data-path a b".
struct ImportFlag {
  std::string flag;                 ///< as written: "--global-batch-size"
  std::string key;                  ///< "global_batch_size": both programs take either spelling
  std::vector<std::string> values;  ///< none for a switch

  std::string value() const;  ///< joined by blanks
};

/// The command of a script that trains.
struct TrainCommand {
  int line = 0;
  std::string program;               ///< "llava/train/train_mem.py"; empty for bare flags
  std::vector<ImportFlag> launcher;  ///< of deepspeed, torchrun, srun, ...
  std::vector<ImportFlag> flags;     ///< of the program
  std::vector<std::string> strays;   ///< words behind the program that belong to no flag
  std::optional<int64_t> world;      ///< processes that the launcher starts, if it says so
};

/// The training command of a script: the one that runs a .py file (or `python -m` module) with
/// flags for training, or bare flags. `number`: which one, from 1, where there are several; 0:
/// there must be one. Throws DataError, naming lines, if there is none or if there are several.
TrainCommand find_train_command(const ShellScript& script, int number, const std::string& origin);

/// Words that are flags and their values. A word is a flag if it begins with "--" and a letter.
/// Words before the first flag go to `strays`.
std::vector<ImportFlag> parse_flags(const std::vector<std::string>& words, size_t begin,
                                    std::vector<std::string>& strays);

}  // namespace mm::run
