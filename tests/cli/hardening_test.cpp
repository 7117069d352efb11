// How the programs, libraries and plugins were linked and compiled, read from their ELF files.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/program.h"
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
    return std::ranges::any_of(dynamic_entries(), [](const Elf64_Dyn& entry) {
      return entry.d_tag == DT_BIND_NOW ||
             (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_BIND_NOW) != 0) ||
             (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_NOW) != 0);
    });
  }
  // The texts of the dynamic section with this tag, such as the names of needed libraries.
  [[nodiscard]] std::vector<std::string> dynamic_texts(Elf64_Sxword tag) const {
    std::vector<std::string> texts;
    for (const Elf64_Dyn& entry : dynamic_entries()) {
      if (entry.d_tag == tag) texts.emplace_back(&bytes_.at(text_table() + entry.d_un.d_val));
    }
    return texts;
  }
  // The folders in which the loader looks for needed libraries first, one string each.
  [[nodiscard]] std::vector<std::string> search_path() const {
    std::vector<std::string> folders;
    for (const auto tag : {DT_RPATH, DT_RUNPATH}) {
      for (const std::string& path : dynamic_texts(tag)) {
        for (size_t begin = 0; begin <= path.size();) {
          const size_t end = std::min(path.find(':', begin), path.size());
          folders.push_back(path.substr(begin, end - begin));
          begin = end + 1;
        }
      }
    }
    return folders;
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

  [[nodiscard]] std::vector<Elf64_Dyn> dynamic_entries() const {
    std::vector<Elf64_Dyn> entries;
    const Elf64_Phdr* dynamic = find(PT_DYNAMIC);
    const size_t count = dynamic == nullptr ? 0 : dynamic->p_filesz / sizeof(Elf64_Dyn);
    for (size_t i = 0; i < count; ++i) {
      entries.push_back(at<Elf64_Dyn>(dynamic->p_offset + i * sizeof(Elf64_Dyn)));
      if (entries.back().d_tag == DT_NULL) break;
    }
    return entries;
  }
  // Where in the file the texts of the dynamic section begin.
  [[nodiscard]] size_t text_table() const {
    for (const Elf64_Dyn& entry : dynamic_entries()) {
      if (entry.d_tag != DT_STRTAB) continue;
      for (const Elf64_Phdr& segment : segments_) {
        const uint64_t offset = entry.d_un.d_ptr - segment.p_vaddr;
        if (segment.p_type == PT_LOAD && offset < segment.p_filesz)
          return segment.p_offset + offset;
      }
    }
    return 0;
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
  for (const auto& entry : fs::directory_iterator(test::build_folder() / "lib/tandem/plugins")) {
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  }
  return files;
}

// Programs, libraries and modules in the build tree, those of tests, too.
std::vector<fs::path> everything_built() {
  std::vector<fs::path> files;
  for (const char* folder : {"bin", "lib"}) {
    for (const auto& entry : fs::recursive_directory_iterator(test::build_folder() / folder)) {
      if (!entry.is_regular_file() || entry.is_symlink()) continue;
      if (test::read_text(entry.path())
              .starts_with("\x7f"
                           "ELF"))
        files.push_back(entry.path());
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

// An empty entry of a search path is the current folder, and so is a relative one in part: what
// lies there is a stranger's.
TEST(Hardening, LibrariesAreSearchedInTheBuildTreeAndTheSystemOnly) {
  const fs::path build = fs::canonical(test::build_folder());
  for (const fs::path& path : everything_built()) {
    for (const std::string& folder : ElfFile(path).search_path()) {
      EXPECT_TRUE(folder.starts_with("$ORIGIN/")) << path << " searches '" << folder << "'";
      const fs::path resolved = fs::weakly_canonical(
          path.parent_path() / folder.substr(std::min(size_t(8), folder.size())));
      EXPECT_FALSE(fs::relative(resolved, build).string().starts_with(".."))
          << path << " searches '" << folder << "'";
    }
    for (const std::string& library : ElfFile(path).dynamic_texts(DT_NEEDED)) {
      EXPECT_EQ(library.find('/'), std::string::npos) << path << " needs '" << library << "'";
    }
  }
}

TEST(Hardening, ALibraryInTheCurrentFolderIsNotLoaded) {
  const test::Desk desk;
  for (const fs::path& path : built()) {
    for (const std::string& library : ElfFile(path).dynamic_texts(DT_NEEDED))
      desk.write(library, "a stranger's");
  }
  EXPECT_EQ(desk.tandem("devices").code, 0);
  EXPECT_EQ(desk.tandem("plugins").code, 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Hardening, CopiesCheckTheSizeOfTheirTarget) {
  const fs::path library = test::build_folder() / "lib/libtandem.so";
  EXPECT_TRUE(ElfFile(library).contains("__memcpy_chk")) << library;
}
#endif

}  // namespace
}  // namespace tandem
