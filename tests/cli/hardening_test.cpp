// How the programs, libraries and plugins were linked and compiled, read from their ELF files.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/folders.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class ElfFile {
 public:
  explicit ElfFile(const fs::path& path) : bytes_(test::read_text(path)) {
    EXPECT_GT(bytes_.size(), sizeof(Elf64_Ehdr)) << path;
    header_ = at<Elf64_Ehdr>(0);
    for (int i = 0; i < header_.e_phnum; ++i) {
      segments_.push_back(at<Elf64_Phdr>(header_.e_phoff + sizeof(Elf64_Phdr) * size_t(i)));
    }
  }

  // Mapped anywhere: a library, or a program with -pie.
  [[nodiscard]] bool is_position_independent() const { return header_.e_type == ET_DYN; }
  [[nodiscard]] bool has_read_only_relocations() const { return find(PT_GNU_RELRO) != nullptr; }
  [[nodiscard]] bool has_executable_stack() const {
    const Elf64_Phdr* stack = find(PT_GNU_STACK);
    return stack == nullptr || (stack->p_flags & PF_X) != 0;
  }
  [[nodiscard]] bool binds_at_once() const {
    const Elf64_Phdr* dynamic = find(PT_DYNAMIC);
    if (dynamic == nullptr) return false;
    for (size_t i = 0; i < dynamic->p_filesz / sizeof(Elf64_Dyn); ++i) {
      const auto entry = at<Elf64_Dyn>(dynamic->p_offset + i * sizeof(Elf64_Dyn));
      if (entry.d_tag == DT_BIND_NOW) return true;
      if (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_BIND_NOW) != 0) return true;
      if (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_NOW) != 0) return true;
    }
    return false;
  }
  // Whether the text is in it, as the name of a symbol that it needs is.
  [[nodiscard]] bool contains(const std::string& text) const {
    return bytes_.find(text) != std::string::npos;
  }

 private:
  template <class T>
  [[nodiscard]] T at(size_t offset) const {
    T value{};
    if (offset + sizeof(T) <= bytes_.size()) std::memcpy(&value, &bytes_[offset], sizeof(T));
    return value;
  }
  [[nodiscard]] const Elf64_Phdr* find(uint32_t type) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == type) return &segment;
    }
    return nullptr;
  }

  std::string bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
};

std::vector<fs::path> programs() {
  const fs::path folder = test::build_folder() / "bin";
  return {folder / "tandem", folder / "tandem-alexnet"};
}

std::vector<fs::path> built() {
  std::vector<fs::path> files = programs();
  files.push_back(test::build_folder() / "lib/libtandem.so");
  for (const char* folder : {"plugins", "onnx", "video"}) {
    const fs::path path = test::build_folder() / "lib/tandem" / folder;
    if (!fs::exists(path)) continue;  // of a module whose library is not installed
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".so") files.push_back(entry.path());
    }
  }
  return files;
}

TEST(Hardening, ProgramsAreMappedAnywhere) {
  for (const fs::path& file : programs()) {
    EXPECT_TRUE(ElfFile(file).is_position_independent()) << file;
  }
}

TEST(Hardening, EveryFileIsRelocatedAtOnceAndThenReadOnly) {
  for (const fs::path& path : built()) {
    const ElfFile file(path);
    EXPECT_TRUE(file.has_read_only_relocations()) << path;
    EXPECT_TRUE(file.binds_at_once()) << path;
    EXPECT_FALSE(file.has_executable_stack()) << path;
  }
}

TEST(Hardening, FunctionsCheckTheirStack) {
  const fs::path lib = test::build_folder() / "lib";
  for (const fs::path& path : {programs().at(0), programs().at(1), lib / "libtandem.so",
                               lib / "tandem/plugins/tandem_backend_cpu.so"}) {
    EXPECT_TRUE(ElfFile(path).contains("__stack_chk_fail")) << path;
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Hardening, CopiesCheckTheSizeOfTheirTarget) {
  const fs::path library = test::build_folder() / "lib/libtandem.so";
  EXPECT_TRUE(ElfFile(library).contains("__memcpy_chk")) << library;
}
#endif

}  // namespace
}  // namespace tandem
