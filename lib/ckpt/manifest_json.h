#pragma once
#include "lib/ckpt/checkpoint_manifest.h"
#include "lib/ckpt/json_fields.h"

namespace mm::ckpt {

// JSON forms that manifests and shard reports share; the decoders throw DataError naming the place.

Json encode_file_record(const FileRecord& file);
FileRecord decode_file_record(const JsonFields& fields);

}  // namespace mm::ckpt
