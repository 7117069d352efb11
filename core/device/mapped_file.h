// Memory that is larger and slower than main memory: a file that is mapped, or the memory of a NUMA
// node, as a CXL expander has it. The file has no name and is deleted with the object. All of the
// space is allocated at once, so that accesses cannot fail later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem {

class MappedFile {
 public:
  MappedFile() = default;
  // Zeros. `place`: a folder for the file; "numa:1": the memory of that node; "": the folder of
  // TMPDIR, else /var/tmp. Error, with the place and the bytes, if there is no such place or not
  // enough space.
  explicit MappedFile(int64_t bytes, const std::string& place = "");
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  // The node that the address's memory is on; -1: the kernel does not say.
  [[nodiscard]] static int numa_node_of(const void* address);

  [[nodiscard]] std::byte* data() const { return address_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  void map_file(const std::string& folder);
  void map_node(const std::string& place);

  std::byte* address_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace tandem
