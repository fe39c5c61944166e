#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mm::probe {

/// A TCP socket (IPv4) that closes itself; every call has a deadline and throws CommError naming
/// the peer. One thread at a time.
class TcpSocket {
 public:
  TcpSocket() = default;
  TcpSocket(int fd, std::string peer) : fd_(fd), peer_(std::move(peer)) {}
  TcpSocket(TcpSocket&& other) noexcept;
  TcpSocket& operator=(TcpSocket&& other) noexcept;
  TcpSocket(const TcpSocket&) = delete;
  ~TcpSocket();

  /// Listens on `address` ("0.0.0.0": all), port 0: any free one. Throws CommError naming a busy
  /// port.
  static TcpSocket listen(const std::string& address, int port);
  /// Takes over a socket that already listens.
  static TcpSocket adopt(int fd) { return {fd, "listener"}; }
  /// `host` as name or address; leaves by `from` if that is an address of this machine. Tries again
  /// until the deadline, since the peer may not listen yet. `peer` stands in messages.
  static TcpSocket connect(const std::string& host, int port, const std::string& from,
                           double timeout_s, std::string peer);

  explicit operator bool() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }
  int port() const;  ///< own
  std::string peer_address() const;
  std::string own_address() const;
  const std::string& peer() const { return peer_; }
  /// Segments that this end sent again so far; 0 where the kernel does not say.
  int64_t retransmits() const;
  void name_peer(std::string peer) { peer_ = std::move(peer); }

  TcpSocket accept(double timeout_s) const;
  void send(std::span<const std::byte> bytes, double timeout_s) const;
  void receive(std::span<std::byte> bytes, double timeout_s) const;
  /// A length and the text; at most 64 MiB.
  void send_text(const std::string& text, double timeout_s) const;
  std::string receive_text(double timeout_s) const;

 private:
  int fd_ = -1;
  std::string peer_;
};

/// Numeric IPv4 address of a host; throws CommError naming it.
std::string resolve(const std::string& host);

}  // namespace mm::probe
