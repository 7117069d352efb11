#include "plugins/cuda/pci.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "plugins/sdk.h"

namespace tandem::cuda {

namespace {

std::string line_of(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// "16.0 GT/s PCIe", or "Unknown".
double number_of(const std::string& file) {
  const std::string line = line_of(file);
  return std::strtod(line.c_str(), nullptr);
}

// An idle GPU slows its link, so the maximum speed of both ends counts. The number of lanes does
// not change.
PciLink read_link(const std::string& lower, const std::string& upper) {
  PciLink link;
  double transfers = number_of(lower + "/max_link_speed");
  const double above = number_of(upper + "/max_link_speed");
  if (above > 0) transfers = transfers > 0 ? std::min(transfers, above) : above;
  if (transfers <= 0) transfers = number_of(lower + "/current_link_speed");
  int lanes = static_cast<int>(number_of(lower + "/current_link_width"));
  link.text = "sysfs";
  if (transfers <= 0 || lanes <= 0) {
    // Some virtual machines report no links.
    constexpr double assumed_transfers = 16;
    transfers = assumed_transfers;
    lanes = 16;
    link.text = "estimated";
  }
  link.bandwidth = pci_bandwidth(transfers, lanes);
  link.text = sdk::text("PCIe ", transfers, " GT/s x", lanes, ", ", link.text);
  return link;
}

// "/sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0": the devices from the host bridge down.
std::vector<std::string> folders_of(const std::string& path) {
  std::vector<std::string> folders;
  for (size_t at = path.find("/pci"); at != std::string::npos;) {
    const size_t end = path.find('/', at + 1);
    folders.push_back(path.substr(0, end));
    at = end;
  }
  return folders;
}

std::string name_of(const std::string& folder) {
  return folder.substr(folder.rfind('/') + 1);
}

}  // namespace

double pci_bandwidth(double transfers, int lanes) {
  constexpr double slow = 5;  // up to this speed a byte has 10 bits on the line, above it 8.125
  const double bits = transfers <= slow ? 10 : 8.125;
  return transfers * 1e9 / bits * lanes;
}

PciPosition find_pci_position(const std::string& id, const std::string& devices) {
  std::string lower = id;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::unique_ptr<char, decltype(&std::free)> path(
      ::realpath((devices + "/" + lower).c_str(), nullptr), &std::free);
  PciPosition position;
  if (path == nullptr) return position;
  const std::vector<std::string> folders = folders_of(path.get());
  if (folders.size() < 2) return position;
  const std::string numa = line_of(folders.back() + "/numa_node");
  position.numa_node = numa.empty() ? -1 : std::atoi(numa.c_str());
  // Two folders form a link: its lower end and the port above. A switch is a port above which
  // another link begins; that port is its name.
  for (size_t i = folders.size() - 1; i >= 1; i = i >= 2 ? i - 2 : 0) {
    const bool has_port = i >= 2;
    PciLink link = read_link(folders[i], has_port ? folders[i - 1] : std::string());
    link.below = name_of(folders[i]);
    link.above = name_of(i >= 3 ? folders[i - 2] : folders[0]);
    position.links.push_back(link);
  }
  return position;
}

}  // namespace tandem::cuda
