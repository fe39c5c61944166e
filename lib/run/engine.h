#pragma once
#include <string>

#include "lib/base/json.h"

namespace mm::run {

/// The engine's verbs: "run", "check", "eval", "caption", "sample", and mmshard's "encode" and
/// "verify" (of encoded sets).
/// `options` are the command line's, by the names that apps/mmtrain gives them. Prints results on
/// stdout and logs on stderr; returns the exit code; throws mm::Error.
int run_verb(const std::string& verb, const Json& options);

// One file a verb.
int verb_run(const Json& options);
int verb_check(const Json& options);
int verb_eval(const Json& options);
int verb_caption(const Json& options);
int verb_sample(const Json& options);
int verb_encode(const Json& options);
int verb_verify(const Json& options);

}  // namespace mm::run
