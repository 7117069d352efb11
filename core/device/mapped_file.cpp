#include "core/device/mapped_file.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

constexpr int64_t max_nodes = 1024;  // of a kernel
constexpr const char* nodes_folder = "/sys/devices/system/node/";

std::string usual_folder() {
  const char* given = std::getenv("TMPDIR");
  return given != nullptr && *given != '\0' ? given : "/var/tmp";
}

[[noreturn]] void fail(int64_t bytes, const std::string& where, int reason,
                       const std::string& advice) {
  throw error("extended memory of {} in {}: {}; {}", human_bytes(bytes), where,
              std::strerror(reason), advice);
}

// No other process can open it, and it is deleted when it is closed and unmapped.
int open_nameless(const std::string& folder) {
  const std::string pattern = folder + "/tandem-XXXXXX";
  std::vector<char> name(pattern.begin(), pattern.end());
  name.push_back('\0');
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0) unlink(name.data());
  return file;
}

// "0-1", the nodes that have memory.
std::string nodes_with_memory() {
  std::string nodes;
  std::getline(std::ifstream(std::string(nodes_folder) + "has_memory"), nodes);
  return nodes.empty() ? "0" : nodes;
}

// Bytes of the node that are free, or hold only copies of files.
int64_t available_bytes(int64_t node) {
  std::ifstream file(fmt::format("{}node{}/meminfo", nodes_folder, node));
  int64_t sum = 0;
  std::string node_word, number, what;  // "Node 0 MemFree:  123 kB"
  for (int64_t kilobytes = 0; file >> node_word >> number >> what >> kilobytes;) {
    if (what == "MemFree:" || what == "FilePages:") sum += kilobytes << 10;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return sum;
}

}  // namespace

MappedFile::MappedFile(int64_t bytes, const std::string& place) : bytes_(bytes) {
  if (place.starts_with("numa:")) {
    map_node(place);
  } else {
    map_file(place);
  }
}

void MappedFile::map_file(const std::string& place) {
  const std::string folder = place.empty() ? usual_folder() : place;
  const std::string where = "a file in folder '" + folder + "'";
  struct stat info {};
  if (stat(folder.c_str(), &info) == 0 && S_ISCHR(info.st_mode)) {
    throw error(
        "extended memory in '{}': it is a device; make its memory a NUMA node (daxctl "
        "reconfigure-device --mode=system-ram) and give numa:N",
        folder);
  }
  const int file = open_nameless(folder);
  int reason = file < 0 ? errno : 0;
  while (file >= 0 && (reason = posix_fallocate(file, 0, bytes_)) == EINTR) {
    // a signal, as from a timer, is no lack of space
  }
  void* address = MAP_FAILED;
  if (reason == 0) {
    address = mmap(nullptr, size_t(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (address == MAP_FAILED) reason = errno;
  }
  if (file >= 0) close(file);
  if (reason != 0) {
    fail(bytes_, where, reason,
         place.empty() ? "set TMPDIR to a writable folder with enough space"
                       : "give a writable folder with enough space");
  }
  address_ = static_cast<std::byte*>(address);
}

// By the kernel's calls: libnuma would be a library more for two of them.
void MappedFile::map_node(const std::string& place) {
  int64_t node = -1;
  const bool is_number = parse_integer(place.substr(place.find(':') + 1), &node);
  const std::string folder = fmt::format("{}node{}", nodes_folder, node);
  if (!is_number || node < 0 || node >= max_nodes || access(folder.c_str(), F_OK) != 0) {
    throw error("memory '{}': this computer has no such NUMA node; nodes with memory: {}", place,
                nodes_with_memory());
  }
  const std::string where = fmt::format("NUMA node {}", node);
  const std::string advice = "give another node or a folder for a mapped file";
  // The kernel would end the program where the node has no room.
  if (bytes_ > available_bytes(node)) fail(bytes_, where, ENOMEM, advice);
  constexpr size_t bits = CHAR_BIT * sizeof(unsigned long);
  std::array<unsigned long, max_nodes / bits> nodes{};
  nodes[size_t(node) / bits] = 1UL << (size_t(node) % bits);
  void* address =
      mmap(nullptr, size_t(bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) fail(bytes_, where, errno, advice);
  address_ = static_cast<std::byte*>(address);  // from here on unmapped with the object
  const long bound =
      syscall(SYS_mbind, address, size_t(bytes_), MPOL_BIND, nodes.data(), nodes.size() * bits, 0);
  if (bound != 0) {
    const int reason = errno;
    munmap(std::exchange(address_, nullptr), size_t(bytes_));
    fail(bytes_, where, reason, advice);
  }
  std::memset(address, 0, size_t(bytes_));
}

int MappedFile::numa_node_of(const void* address) {
  int node = -1;
  const long known =
      syscall(SYS_get_mempolicy, &node, nullptr, 0, address, MPOL_F_NODE | MPOL_F_ADDR);
  return known == 0 ? node : -1;
}

MappedFile::~MappedFile() {
  if (address_ != nullptr) munmap(address_, size_t(bytes_));
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace tandem
