#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/ckpt/dtype.h"
#include "lib/ckpt/element_box.h"
#include "lib/ckpt/target.h"
#include "lib/ckpt/tensor_tree.h"

namespace mm::ckpt {

struct InspectedPiece {
  size_t file = 0;  ///< index into Inspection::files
  ElementBox box;
};

struct InspectedTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;
  uint64_t size_bytes = 0;
  std::vector<InspectedPiece> pieces;
};

struct InspectedFile {
  std::string name;
  uint64_t size_bytes = 0;
  uint64_t tensors = 0;
};

/// What mmckpt inspect shows; text and JSON are made from this one struct.
struct Inspection {
  Target target;
  std::vector<InspectedFile> files;
  std::vector<InspectedTensor> tensors;  ///< sorted by name
  TensorTree tree;
  std::vector<std::string> notes;
  Json checkpoint;  ///< our checkpoints only: step, save ids, world size, state; else null
};

/// Reads headers and manifest only, no tensor: 10,000 tensors take well under a second. For a run
/// it shows the newest checkpoint that is whole in structure and notes those passed over. Throws
/// DataError, IoError.
Inspection inspect(const Target& target);

struct InspectTextOptions {
  int depth = 3;         ///< levels of the tree
  bool tensors = false;  ///< one line per tensor, with dtype, shape and layout
};
std::string inspection_text(const Inspection& inspection, const InspectTextOptions& options);
/// {"schema": 1, "kind", "path", "files": [...], "parts": [...], "tensors": [...], "notes",
/// "checkpoint"}.
Json inspection_json(const Inspection& inspection);

}  // namespace mm::ckpt
