#include "lib/dist/rendezvous.h"

#include <unistd.h>

#include <exception>
#include <fstream>
#include <future>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/dist/backend_errors.h"
#include "lib/dist/local_address.h"
#include "lib/dist/rendezvous_store.h"

namespace mm::dist {
namespace {

constexpr const char* kJobKey = "mm/job";

std::string arrival_key(int rank) { return fmt::format("mm/arrived/{}", rank); }

void put(c10d::Store& store, const std::string& key, const std::string& value) {
  store.set(key, std::vector<uint8_t>(value.begin(), value.end()));
}

std::string text_of(c10d::Store& store, const std::string& key) {
  const std::vector<uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

std::string job_line(const RendezvousOptions& options) {
  return fmt::format("job \"{}\" of {} ranks", options.job_id, options.world);
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

void check_options(const RendezvousOptions& o) {
  if (o.world < 1) throw UsageError("world size {}; expected at least 1", o.world);
  if (o.rank < 0 || o.rank >= o.world)
    throw UsageError("rank {} in a world of {} ranks", o.rank, o.world);
  if (o.port < 0 || o.port > 65535) throw UsageError("port {}; expected 0 to 65535", o.port);
  if (o.world > 1 && o.port == 0 && o.port_file.empty()) {
    throw UsageError(
        "port 0 means any free port, but no port file tells the other ranks; set MASTER_PORT");
  }
}

/// Reads "PORT JOB\n" once rank 0 has put it there; a file of another job counts as not there yet.
int read_port(const RendezvousOptions& options) {
  const auto deadline = std::chrono::steady_clock::now() + options.connect_timeout;
  while (std::chrono::steady_clock::now() < deadline) {
    std::ifstream file(options.port_file);
    int port = 0;
    std::string job;
    if (file >> port && std::getline(file >> std::ws, job) && job == job_line(options) &&
        port > 0 && port < 65536) {
      return port;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw CommError("rank {}: rank 0 of {} did not write its port to {} within {} ms", options.rank,
                  job_line(options), options.port_file, options.connect_timeout.count());
}

c10::intrusive_ptr<c10d::TCPStore> open_store(const RendezvousOptions& options, int port) {
  c10d::TCPStoreOptions tcp;
  tcp.port = static_cast<uint16_t>(port);
  tcp.isServer = options.rank == 0;
  tcp.waitWorkers = false;
  tcp.timeout = options.connect_timeout;
  if (tcp.isServer && options.listen_fd >= 0) tcp.masterListenFd = options.listen_fd;
  return c10::make_intrusive<c10d::TCPStore>(options.master_addr, tcp);
}

// Another program that accepts the connection and stays silent would hold TCPStore's constructor
// for ever: its handshake has no deadline. The thread is then left behind, until the stranger hangs
// up.
c10::intrusive_ptr<c10d::TCPStore> open_in_time(const RendezvousOptions& options, int port) {
  std::packaged_task<c10::intrusive_ptr<c10d::TCPStore>()> task(
      [options, port] { return open_store(options, port); });
  auto store = task.get_future();
  std::thread(std::move(task)).detach();
  if (store.wait_for(options.connect_timeout + std::chrono::seconds(1)) !=
      std::future_status::ready) {
    throw std::runtime_error("what listens there does not answer as a store");
  }
  return store.get();
}

c10::intrusive_ptr<c10d::TCPStore> host_store(const RendezvousOptions& options) {
  if (!is_this_host(options.master_addr)) {
    throw CommError(
        "MASTER_ADDR={} is not an address of {}, where rank 0 runs; set it to the host of rank 0",
        options.master_addr, host_name());
  }
  try {
    auto store = open_store(options, options.port);
    put(*store, kJobKey, job_line(options));
    if (!options.port_file.empty()) {
      write_file_atomic(options.port_file,
                        fmt::format("{} {}\n", store->getPort(), job_line(options)));
    }
    return store;
  } catch (const c10::Error& error) {
    throw CommError(
        "rank 0 cannot listen on port {} of {}: {}; is it in use? choose another MASTER_PORT",
        options.port, options.master_addr, reason_of(error));
  }
}

c10::intrusive_ptr<c10d::TCPStore> reach_store(const RendezvousOptions& options) {
  const int port = options.port != 0 ? options.port : read_port(options);
  const std::string place = fmt::format("{}:{}", options.master_addr, port);
  std::string job;
  c10::intrusive_ptr<c10d::TCPStore> store;
  try {
    store = open_in_time(options, port);
    store->wait({kJobKey}, options.connect_timeout);
    job = text_of(*store, kJobKey);
  } catch (const std::exception& error) {
    throw CommError(
        "rank {} finds no store of rank 0 at {} within {} ms: {}; is rank 0 up, MASTER_ADDR its "
        "host, and "
        "the port not used by another program?",
        options.rank, place, options.connect_timeout.count(), reason_of(error));
  }
  if (job != job_line(options)) {
    throw CommError(
        "rank {} of {} reached {} at {}; two jobs share a port, or an earlier start is still alive",
        options.rank, job_line(options), job, place);
  }
  return store;
}

std::string absent_ranks(c10d::Store& store, int world) {
  std::string text;
  for (int r = 0; r < world; ++r) {
    if (!store.check({arrival_key(r)})) text += fmt::format("{}{}", text.empty() ? "" : ", ", r);
  }
  return text;
}

void wait_for_all(c10d::Store& store, const RendezvousOptions& options) {
  std::vector<std::string> keys;
  for (int r = 0; r < options.world; ++r) keys.push_back(arrival_key(r));
  try {
    store.wait(keys, options.timeout);
  } catch (const c10::DistStoreError&) {
    throw CommError("rank {}: rank {} of {} did not come within {} ms", options.rank,
                    absent_ranks(store, options.world), job_line(options), options.timeout.count());
  }
}

void arrive(c10d::Store& store, const RendezvousOptions& options) {
  try {
    if (store.add(fmt::format("mm/count/{}", options.rank), 1) != 1) {
      throw CommError("rank {} of {} came twice; each rank needs a RANK of its own", options.rank,
                      job_line(options));
    }
    put(store, arrival_key(options.rank), host_name());
    wait_for_all(store, options);
  } catch (const c10::Error& error) {
    throw CommError("rank {} lost the store of rank 0 at {}: {}", options.rank, options.master_addr,
                    reason_of(error));
  }
}

}  // namespace

Rendezvous Rendezvous::join(const RendezvousOptions& options) {
  prepare_backend();
  check_options(options);
  auto impl = std::make_shared<Impl>();
  impl->rank = options.rank;
  impl->world = options.world;
  if (options.world == 1) return Rendezvous(std::move(impl));
  c10::intrusive_ptr<c10d::TCPStore> store =
      options.rank == 0 ? host_store(options) : reach_store(options);
  arrive(*store, options);
  impl->address = address_towards(options.master_addr);
  impl->port = store->getPort();
  impl->store = std::move(store);
  return Rendezvous(std::move(impl));
}

std::vector<Rendezvous> Rendezvous::in_process(int world, std::chrono::milliseconds timeout) {
  prepare_backend();
  auto store = c10::make_intrusive<c10d::HashStore>();
  store->setTimeout(timeout);
  std::vector<Rendezvous> all;
  for (int r = 0; r < world; ++r) {
    auto impl = std::make_shared<Impl>();
    impl->store = store;
    impl->rank = r;
    impl->world = world;
    impl->address = "127.0.0.1";
    all.push_back(Rendezvous(std::move(impl)));
  }
  return all;
}

int Rendezvous::rank() const { return impl_->rank; }
int Rendezvous::world() const { return impl_->world; }
int Rendezvous::port() const { return impl_->port; }

void Rendezvous::set(const std::string& key, const std::string& value) {
  if (!impl_->store) return;
  try {
    put(*impl_->store, "user/" + key, value);
  } catch (const std::exception& error) {
    throw CommError("rank {} cannot set \"{}\": {}", impl_->rank, key, reason_of(error));
  }
}

std::string Rendezvous::get(const std::string& key, std::chrono::milliseconds timeout) {
  try {
    if (!impl_->store) throw CommError("a world of one rank has no store");
    impl_->store->wait({"user/" + key}, timeout);
    return text_of(*impl_->store, "user/" + key);
  } catch (const c10::Error& error) {
    throw CommError("rank {} waited {} ms for \"{}\": {}", impl_->rank, timeout.count(), key,
                    reason_of(error));
  }
}

bool Rendezvous::has(const std::string& key) {
  try {
    return impl_->store && impl_->store->check({"user/" + key});
  } catch (const std::exception& error) {
    throw CommError("rank {} cannot look for \"{}\": {}", impl_->rank, key, reason_of(error));
  }
}

}  // namespace mm::dist
