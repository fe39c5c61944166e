#include "lib/ckpt/tensor_tree.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace mm::ckpt;

namespace {

TensorTree tree_of(std::vector<std::string> names) {
  TensorTree tree;
  for (const std::string& name : names) tree.add(name, 1024);
  return tree;
}

}  // namespace

TEST_CASE("tensor tree: sums, order of layers and joined chains") {
  const TensorTree tree =
      tree_of({"m.layers.10.w", "m.layers.9.w", "m.layers.9.b", "m.head.only.weight"});
  CHECK(tree.tensors == 4);
  CHECK(tree.bytes == 4096);
  const auto line = [](const std::string& name, int tensors, const char* size) {
    return fmt::format("{:<48} {:>7} {} {:>10}\n", name, tensors,
                       tensors == 1 ? "tensor " : "tensors", size);
  };
  CHECK(tree.text(2) == line("  m.", 4, "4.0 KiB") + line("    head.only.weight", 1, "1.0 KiB") +
                            line("    layers.", 3, "3.0 KiB"));
  CHECK(tree.text(3).find("9.") < tree.text(3).find("10.w"));
}

TEST_CASE("tensor tree: parts are the first fork of the names") {
  const TensorTree model = tree_of({"model.vision.a", "model.vision.b", "model.llm.a"});
  const auto parts = model.parts();
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].first == "model.llm.a");
  CHECK(parts[1].first == "model.vision.");
  CHECK(parts[1].second->tensors == 2);
  const TensorTree one = tree_of({"x/y"}), two = tree_of({"x/y", "x/z"});
  CHECK(one.parts().size() == 1);
  CHECK(two.parts()[1].first == "x/z");
}

TEST_CASE("tensor tree: a tensor whose name begins another's is counted once") {
  const TensorTree tree = tree_of({"a", "a.b", "a.", "..", "."});
  CHECK(tree.tensors == 5);
  CHECK_FALSE(tree.text(9).empty());
}

TEST_CASE("size text: binary units with one digit") {
  CHECK(size_text(0) == "0 B");
  CHECK(size_text(1023) == "1023 B");
  CHECK(size_text(1536) == "1.5 KiB");
  CHECK(size_text(uint64_t{5} << 40) == "5.0 TiB");
}
