#include "lib/dist/single_group.h"

#include <utility>

namespace mm::dist {
namespace {

class SingleGroup final : public Group {
 public:
  explicit SingleGroup(std::string name) : name_(std::move(name)) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& name() const override { return name_; }

  void all_reduce_sum(at::Tensor) override {}
  void all_reduce_max(at::Tensor) override {}
  void reduce_scatter_sum(at::Tensor out, const at::Tensor& in) override { copy(out, in); }
  void all_gather(at::Tensor out, const at::Tensor& in) override { copy(out, in); }
  void broadcast(at::Tensor, int) override {}
  std::vector<std::string> all_gather_bytes(const std::string& bytes) override { return {bytes}; }
  void barrier() override {}

 private:
  static void copy(const at::Tensor& out, const at::Tensor& in) {
    if (!out.is_same(in)) out.view({-1}).copy_(in.reshape({-1}));
  }

  std::string name_;
};

}  // namespace

std::unique_ptr<Group> make_single_group(std::string name) {
  return std::make_unique<SingleGroup>(std::move(name));
}

}  // namespace mm::dist
