#include "lib/health/pci_devices.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "lib/base/text_escape.h"

namespace mm::health {
namespace {

// The class word of /sys/.../class: base class and sub-class.
std::optional<PciDevice::Kind> kind_of(const std::string& text) {
  if (text.starts_with("0x0302") || text.starts_with("0x0300")) return PciDevice::Kind::kGpu;
  if (text.starts_with("0x0200") || text.starts_with("0x0207")) return PciDevice::Kind::kNetwork;
  if (text.starts_with("0x010802")) return PciDevice::Kind::kNvme;
  if (text.starts_with("0x0680")) return PciDevice::Kind::kSwitch;
  return std::nullopt;
}

const char* word(PciDevice::Kind kind) {
  switch (kind) {
    case PciDevice::Kind::kGpu:
      return "GPU";
    case PciDevice::Kind::kNetwork:
      return "network card";
    case PciDevice::Kind::kNvme:
      return "NVMe disk";
    case PciDevice::Kind::kSwitch:
      break;
  }
  return "switch";
}

// "TOTAL_ERR_COR 3" at the end of the aer_dev files.
std::optional<uint64_t> aer_total(const SystemTree& tree, const std::string& file) {
  const auto text = tree.text(file);
  if (!text) return std::nullopt;
  const size_t total = text->rfind("TOTAL_ERR");
  if (total == std::string::npos) return std::nullopt;
  const size_t blank = text->find(' ', total);
  uint64_t value = 0;
  if (blank == std::string::npos ||
      std::from_chars(text->data() + blank + 1, text->data() + text->size(), value).ec !=
          std::errc())
    return std::nullopt;
  return value;
}

bool is_bdf(const std::string& name) {
  return name.size() >= 12 && name[4] == ':' && name[7] == ':' && name[10] == '.';
}

std::vector<std::string> bridges(const std::filesystem::path& real) {
  std::vector<std::string> path;
  for (const auto& part : real) {
    const std::string name = part.string();
    if (is_bdf(name) || name.starts_with("pci0")) path.push_back(name);
  }
  return path;
}

// "32.0 GT/s PCIe" -> 32.0
double transfers(const std::string& speed) { return speed.empty() ? 0 : std::atof(speed.c_str()); }

Finding slow_link(const PciDevice& device) {
  return {.level = Level::kBad,
          .code = "F11",
          .where = fmt::format("{} {}", word(device.kind), device.bdf),
          .what = "PCIe link below its best",
          .evidence = fmt::format("x{} at {}, expected x{} at {}", device.width.value_or(0),
                                  device.speed, device.max_width.value_or(0), device.max_speed),
          .action = "exclude the node; reseat the card, and replace it if that does not help"};
}

}  // namespace

std::vector<PciDevice> read_pci(const SystemTree& tree) {
  std::vector<PciDevice> devices;
  const std::string base = "/sys/bus/pci/devices";
  for (const std::string& bdf : tree.names(base)) {
    const std::string at = base + "/" + bdf;
    const auto kind = kind_of(tree.text(at + "/class").value_or(""));
    if (!kind) continue;
    PciDevice device{.bdf = bdf, .kind = *kind};
    device.speed = escape_text(tree.text(at + "/current_link_speed").value_or(""));
    device.max_speed = escape_text(tree.text(at + "/max_link_speed").value_or(""));
    device.width = tree.number(at + "/current_link_width");
    device.max_width = tree.number(at + "/max_link_width");
    device.numa_node = tree.number(at + "/numa_node");
    device.corrected = aer_total(tree, at + "/aer_dev_correctable");
    device.nonfatal = aer_total(tree, at + "/aer_dev_nonfatal");
    device.fatal = aer_total(tree, at + "/aer_dev_fatal");
    device.path = bridges(tree.resolved(at));
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<Finding> judge_pci(const std::vector<PciDevice>& devices, const Expectation& expected) {
  std::vector<Finding> findings;
  size_t judged = 0;
  for (const PciDevice& device : devices) {
    // Virtual functions and virtio say width 0 or nothing.
    const bool known = device.width.value_or(0) > 0 && device.max_width.value_or(0) > 0 &&
                       device.max_width.value_or(0) < 255;
    judged += known ? 1 : 0;
    const bool narrow = known && *device.width < *device.max_width;
    const bool slow = known && device.kind != PciDevice::Kind::kGpu &&
                      transfers(device.speed) < transfers(device.max_speed);
    if (expected.pcie.full_width && (narrow || slow)) findings.push_back(slow_link(device));
    if (device.fatal.value_or(0) > static_cast<uint64_t>(expected.pcie.fatal_errors_max)) {
      findings.push_back({.level = Level::kBad,
                          .code = "F49",
                          .where = fmt::format("{} {}", word(device.kind), device.bdf),
                          .what = "fatal PCIe errors",
                          .evidence = fmt::format("{} since the machine started", *device.fatal),
                          .action = "exclude the node; drain it for a check of card and slot"});
    }
  }
  if (findings.empty() && judged > 0)
    findings.push_back(ok("PCIe", fmt::format("{} links at their best width", judged)));
  if (judged == 0) findings.push_back(not_checked("PCIe", "no device tells its link"));
  return findings;
}

}  // namespace mm::health
