#pragma once
#include <string>

#include "lib/run/prompt_text.h"
#include "lib/run/trained_model.h"

namespace mm::run {

/// A picture file's bytes as the model reads pictures: a square, or tiles or a size of its own with
/// their grid. `origin` names the file in messages. Throws DataError for a picture that cannot be
/// read, and for a preparation that is unknown.
PreparedPicture prepare_picture(const TrainedModel& trained, const std::string& bytes,
                                const std::string& origin);

}  // namespace mm::run
