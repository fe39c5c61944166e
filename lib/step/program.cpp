#include "lib/step/program.h"

#include <string>

#include "lib/base/hash.h"

namespace mm::step {
namespace {

// Everything as 64-bit integers in table order, vectors led by their lengths: no two programs share
// a byte string.
class Bytes {
 public:
  template <typename T>
  requires std::is_integral_v<T>
  void add(T value) {
    const auto wide = static_cast<int64_t>(value);
    text_.append(reinterpret_cast<const char*>(&wide), sizeof wide);
  }
  template <typename T>
  void add(const std::vector<T>& values) {
    add(values.size());
    for (const T& value : values) add(value);
  }
  void add(const std::string& value) {
    add(value.size());
    text_ += value;
  }
  void add(const SegmentRow& row) {
    for (int value : {row.block, row.first_step, row.steps, row.loss}) add(value);
    add(row.in);
    add(row.out);
    add(row.in_needs_grad);
    add(row.out_needs_grad);
    add(row.params);
    add(row.trained);
    add(row.has_backward);
    add(row.recompute);
    add(row.ahead);
    add(row.pictures_at_once);
    add(static_cast<int>(row.compute));
  }
  void add(const BucketRow& row) {
    add(row.params);
    add(row.elements);
  }
  void add(const GroupRow& row) {
    add(row.name);
    add(row.size);
  }
  void add(const Instruction& i) {
    add(static_cast<int>(i.op));
    for (int value : {int{i.queue}, i.micro_batch, i.chunk, i.block, i.segment, i.group, i.bucket})
      add(value);
    add(i.ahead);
    add(i.waits);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

uint64_t Program::hash() const {
  Bytes bytes;
  bytes.add(micro_batches);
  bytes.add(forward_only);
  bytes.add(ahead);
  bytes.add(slots);
  bytes.add(segments);
  bytes.add(buckets);
  bytes.add(groups);
  bytes.add(list);
  return xxh3_64(bytes.text());
}

}  // namespace mm::step
