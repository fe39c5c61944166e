#pragma once
#include <map>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lib/dist/rendezvous.h"

namespace mm::dist {

/// Inside lib/dist only: what the groups need of a rendezvous.
struct Rendezvous::Impl {
  c10::intrusive_ptr<c10d::Store> store;  ///< null in a world of one
  int rank = 0, world = 1, port = 0;
  std::string address;  ///< ours, for connections from peers
  std::map<std::string, int>
      group_uses;  ///< groups made so far by name, so that a second one gets keys of its own
};

}  // namespace mm::dist
