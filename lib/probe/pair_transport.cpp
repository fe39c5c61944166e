#include "lib/probe/pair_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/json.h"

namespace mm::probe {
namespace {

constexpr size_t kChunk = size_t{256} << 10;

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

void send_stream(const TcpSocket& socket, const TransportOptions& o) {
  const std::vector<std::byte> chunk(kChunk);
  for (uint64_t sent = 0; sent < o.bytes; sent += kChunk)
    socket.send({chunk.data(), std::min<uint64_t>(kChunk, o.bytes - sent)}, o.timeout_s);
  std::byte done{};
  socket.receive({&done, 1}, o.timeout_s * 10);
}

void receive_stream(const TcpSocket& socket, const TransportOptions& o) {
  std::vector<std::byte> chunk(kChunk);
  for (uint64_t got = 0; got < o.bytes; got += kChunk)
    socket.receive({chunk.data(), std::min<uint64_t>(kChunk, o.bytes - got)}, o.timeout_s);
  const std::byte done{1};
  socket.send({&done, 1}, o.timeout_s);
}

Json measure_json(const PairMeasure& m) {
  return {{"gb_s", m.gb_s}, {"latency_us", m.latency_us}, {"error", m.error}};
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
      receive_stream(socket, options);
    }
    slowest_s = std::max(slowest_s, now_s() - start_s);
  }
  m.gb_s = 1e-9 * static_cast<double>(options.bytes) / std::max(slowest_s, 1e-9);
  return m;
}

PairTransport::PairTransport(const TransportOptions& options, RankStar& star)
    : options_(options), star_(star) {
  Json own = Json::array();
  for (const Interface& rail : options.rails) {
    listeners_.push_back(TcpSocket::listen(rail.address, 0));
    own.push_back(fmt::format("{} {} {}", rail.address, listeners_.back().port(), rail.name));
  }
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
  // Ranks that had nothing to do wait here for the others.
  star_.set_timeout(options_.timeout_s * 30 + 30);
  const auto all = star_.all_gather(measure_json(own).dump());
  std::vector<PairMeasure> measures;
  for (const Pair& pair : slot) {
    PairMeasure m{.pair = pair, .rail = rail};
    for (const int end : {pair.b, pair.a}) {
      const Json json = parse_json(all[static_cast<size_t>(end)], "measurement of a rank");
      if (const std::string error = json.at("error"); !error.empty()) m.error = error;
      if (end == pair.a) {
        m.gb_s = json.at("gb_s");
        m.latency_us = json.at("latency_us");
      }
    }
    measures.push_back(std::move(m));
  }
  return measures;
}

}  // namespace mm::probe
