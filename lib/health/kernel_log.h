#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mm::health {

struct KernelLine {
  std::optional<double> uptime_s;  ///< seconds since the machine started
  std::string text;
};

/// `checked` is false if the log may not be read; `problem` says why.
struct KernelLog {
  bool checked = false;
  std::string problem;
  std::vector<KernelLine> lines;
};

/// /dev/kmsg, or a file of its records ("6,1234,5678901,-;text"), of `dmesg` ("[ 12.345] text"), of
/// syslog ("... kernel: [ 12.345] text") or of bare lines. Reads what is there and does not wait;
/// the newest 16 MiB of a file.
KernelLog read_kernel_log(const std::filesystem::path& path);

KernelLine parse_kernel_line(std::string_view line);

}  // namespace mm::health
