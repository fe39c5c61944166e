#pragma once
#include <string>

#include "tools/mm_oracle/folder.h"
#include "tools/mm_oracle/report.h"

namespace mm::oracle {

/// A kind of folder: recognised by expected.json's "what". `check` is null where all of it is still
/// to be built.
struct Kind {
  const char* name;
  const char* what;
  void (*check)(Folder&, Report&);
};

/// Throws DataError, naming the folder, if no kind has its "what".
const Kind& kind_of(const Folder& folder);

/// Runs the kind's checks, then accounts for every key and tensor that none of them looked at.
Report compare(const Kind& kind, Folder& folder);

void check_llava(Folder& folder, Report& report);
void check_vae(Folder& folder, Report& report);
void check_text_encoders(Folder& folder, Report& report);
void check_dit(Folder& folder, Report& report);
void check_pixart(Folder& folder, Report& report);
void check_sd3(Folder& folder, Report& report);
void check_images(Folder& folder, Report& report);
void check_metrics(Folder& folder, Report& report);
void check_schedules(Folder& folder, Report& report);
/// Its noise schedules, sampling steps and flows.
void check_diffusion_schedules(Folder& folder, Report& report);
void check_tokenizers(Folder& folder, Report& report);
/// Needs the folder of tokenizers inside the folder or beside it.
void check_conversations(Folder& folder, Report& report);

}  // namespace mm::oracle
