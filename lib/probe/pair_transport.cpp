#include "lib/probe/pair_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "lib/base/clock.h"
#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/log.h"

namespace mm::probe {
namespace {

constexpr size_t kChunk = size_t{256} << 10;
constexpr double kStreamTimeouts = 10;  // a stream may take so many of a step's

double now_s() { return system_clock().monotonic_s(); }

// One byte there and back; half of the median time.
double ping(const TcpSocket& socket, bool lead, const TransportOptions& o) {
  std::vector<double> times;
  std::byte byte{1};
  for (int i = 0; i < o.pings; ++i) {
    const double start_s = now_s();
    if (lead) socket.send({&byte, 1}, o.timeout_s);
    socket.receive({&byte, 1}, o.timeout_s);
    if (!lead) socket.send({&byte, 1}, o.timeout_s);
    times.push_back(now_s() - start_s);
  }
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : 0.5e6 * times[times.size() / 2];
}

// A quarter of a mebibyte, or less, so that even a short stream shows its pauses.
size_t chunk_of(const TransportOptions& o) {
  return static_cast<size_t>(std::clamp<uint64_t>(o.bytes / 64, 4096, kChunk));
}

// A link that trickles would pass every chunk's deadline.
void check_pace(const TcpSocket& socket, double start_s, uint64_t moved,
                const TransportOptions& o) {
  if (now_s() - start_s > kStreamTimeouts * o.timeout_s)
    throw CommError("{}: only {} of {} bytes within {:.0f} s", socket.peer(), moved, o.bytes,
                    kStreamTimeouts * o.timeout_s);
}

void send_stream(const TcpSocket& socket, const TransportOptions& o) {
  const std::vector<std::byte> chunk(chunk_of(o));
  const double start_s = now_s();
  for (uint64_t sent = 0; sent < o.bytes; sent += chunk.size()) {
    check_pace(socket, start_s, sent, o);
    socket.send({chunk.data(), std::min<uint64_t>(chunk.size(), o.bytes - sent)}, o.timeout_s);
  }
  std::byte done{};
  socket.receive({&done, 1}, o.timeout_s * kStreamTimeouts);
}

// By how many milliseconds the longest pause between two chunks exceeds the median one.
double receive_stream(const TcpSocket& socket, const TransportOptions& o) {
  std::vector<std::byte> chunk(chunk_of(o));
  std::vector<double> pauses;
  const double start_s = now_s();
  double last_s = start_s;
  for (uint64_t got = 0; got < o.bytes; got += chunk.size()) {
    check_pace(socket, start_s, got, o);
    socket.receive({chunk.data(), std::min<uint64_t>(chunk.size(), o.bytes - got)}, o.timeout_s);
    const double at_s = now_s();
    pauses.push_back(at_s - last_s);
    last_s = at_s;
  }
  const std::byte done{1};
  socket.send({&done, 1}, o.timeout_s);
  std::sort(pauses.begin(), pauses.end());
  return pauses.empty() ? 0 : 1e3 * (pauses.back() - pauses[pauses.size() / 2]);
}

Json measure_json(const PairMeasure& m) {
  return {{"gb_s", m.gb_s},         {"latency_us", m.latency_us},   {"error", m.error},
          {"stall_ms", m.stall_ms}, {"retransmits", m.retransmits}, {"losses", m.losses_a}};
}

// Figures are the leading end's; what went wrong may have been seen by either.
PairMeasure both_ends(const Pair& pair, int rail, const Json& a, const Json& b) {
  PairMeasure m{.pair = pair, .rail = rail};
  m.gb_s = a.at("gb_s");
  m.latency_us = a.at("latency_us");
  m.error = a.at("error");
  if (m.error.empty()) m.error = b.at("error");
  m.stall_ms = std::max(a.at("stall_ms").get<double>(), b.at("stall_ms").get<double>());
  m.retransmits = a.at("retransmits").get<int64_t>() + b.at("retransmits").get<int64_t>();
  m.losses_a = a.at("losses");
  m.losses_b = b.at("losses");
  return m;
}

}  // namespace

PairMeasure measure_link(const TcpSocket& socket, bool lead, const TransportOptions& options) {
  PairMeasure m;
  m.latency_us = ping(socket, lead, options);
  double slowest_s = 0;
  for (const bool ours : {true, false}) {
    const double start_s = now_s();
    if (ours == lead) {
      send_stream(socket, options);
    } else {
      m.stall_ms = receive_stream(socket, options);
    }
    slowest_s = std::max(slowest_s, now_s() - start_s);
  }
  m.gb_s = 1e-9 * static_cast<double>(options.bytes) / std::max(slowest_s, 1e-9);
  m.retransmits = socket.retransmits();
  return m;
}

PairTransport::PairTransport(const TransportOptions& options, RankStar& star)
    : options_(options), star_(star) {
  Json own = Json::array();
  std::string failure;
  try {
    for (const Interface& rail : options.rails) {
      interfaces_.push_back(interface_with(rail.address).value_or(rail.name));
      losses_before_.push_back(link_losses(interfaces_.back()));
      listeners_.push_back(TcpSocket::listen(rail.address, 0));
      own.push_back(fmt::format("{} {} {}", rail.address, listeners_.back().port(), rail.name));
    }
  } catch (const Error& error) {
    failure = fmt::format("rank {}: {}", star.rank(), error.what());
  }
  star.agree(failure);  // nobody waits for a rank that has left
  for (const std::string& text : star.all_gather(own.dump())) {
    places_.push_back(parse_json(text, "addresses of a rank").get<std::vector<std::string>>());
    if (places_.back().size() != options.rails.size())
      throw UsageError("rank {} has {} rails, this one {}; name them with --rails",
                       places_.size() - 1, places_.back().size(), options.rails.size());
  }
}

PairMeasure PairTransport::measure_own(const Pair& pair, int rail) {
  const bool lead = star_.rank() == pair.a;
  const int peer = lead ? pair.b : pair.a;
  const auto at = static_cast<size_t>(rail);
  const std::string label =
      fmt::format("rank {} on {} by {}", peer, star_.hosts()[static_cast<size_t>(peer)],
                  options_.rails[at].name);
  if (lead) {
    std::istringstream place(places_[static_cast<size_t>(peer)][at]);
    std::string address;
    int port = 0;
    place >> address >> port;
    const TcpSocket socket =
        TcpSocket::connect(address, port, options_.rails[at].address, options_.timeout_s, label);
    socket.send_text(std::to_string(star_.rank()), options_.timeout_s);
    return measure_link(socket, true, options_);
  }
  const double until_s = now_s() + options_.timeout_s + 1;
  while (true) {
    TcpSocket socket = listeners_[at].accept(std::max(0.0, until_s - now_s()));
    socket.name_peer(label);
    // A caller of an earlier slot that came too late is not the one we wait for.
    if (socket.receive_text(options_.timeout_s) != std::to_string(peer)) continue;
    return measure_link(socket, false, options_);
  }
}

int64_t PairTransport::own_losses(int rail) const {
  const auto at = static_cast<size_t>(rail);
  return link_losses(interfaces_[at]) - losses_before_[at];
}

std::vector<int64_t> PairTransport::losses(int rail) {
  std::vector<int64_t> all;
  for (const std::string& text : star_.all_gather(std::to_string(own_losses(rail))))
    all.push_back(parse_json(text, "losses of a rank").get<int64_t>());
  return all;
}

std::vector<PairMeasure> PairTransport::measure(const Slot& slot, int rail) {
  PairMeasure own;
  for (const Pair& pair : slot) {
    if (pair.a != star_.rank() && pair.b != star_.rank()) continue;
    try {
      own = measure_own(pair, rail);
    } catch (const CommError& error) {
      own.error = error.what();
    }
  }
  own.losses_a = own_losses(rail);
  // Ranks that had nothing to do wait here for the others.
  star_.set_timeout(options_.timeout_s * 30 + 30);
  const auto all = star_.all_gather(measure_json(own).dump());
  std::vector<PairMeasure> measures;
  for (const Pair& pair : slot) {
    const auto end = [&](int rank) {
      return parse_json(all[static_cast<size_t>(rank)], "measurement of a rank");
    };
    measures.push_back(both_ends(pair, rail, end(pair.a), end(pair.b)));
  }
  return measures;
}

std::vector<std::string> member_names(const std::vector<std::string>& hosts) {
  std::vector<std::string> names = hosts;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    if (std::count(hosts.begin(), hosts.end(), hosts[rank]) > 1)
      names[rank] += fmt::format("#{}", rank);
  }
  return names;
}

std::vector<Interface> choose_rails(const std::vector<std::string>& settings,
                                    const std::string& fallback_address, int nodes) {
  std::vector<std::string> wanted = settings;
  if (wanted.empty()) {
    if (const auto setting = env::get("NCCL_SOCKET_IFNAME")) wanted.push_back(*setting);
  }
  if (wanted.empty()) return {{"default", fallback_address}};
  std::vector<Interface> rails;
  for (const std::string& setting : wanted) {
    const InterfaceChoice choice = choose_interface(local_interfaces(), setting, nodes);
    for (const std::string& warning : choice.warnings) log::warn("probe", warning);
    rails.push_back(choice.chosen);
  }
  return rails;
}

}  // namespace mm::probe
