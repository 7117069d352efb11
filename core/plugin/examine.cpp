#include "core/plugin/examine.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/files/files.h"

// The header of the library or program that this code is in (a symbol of the linker).
extern "C" {
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
}

namespace tandem {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Section = ElfW(Shdr);
using Entry = ElfW(Dyn);

constexpr uint64_t max_span = uint64_t{1} << 40;  // of addresses; far above any library's

class Examination {
 public:
  explicit Examination(const std::filesystem::path& path) : file_(path, "module") {}

  // Throws Error with what is wrong.
  void go() {
    header();
    segments();
    sections();
    dynamic_table();
  }

 private:
  [[noreturn]] static void damaged(const std::string& what) {
    throw error("it is damaged or not complete ({}): build or copy it again", what);
  }

  // `count` items at `offset` of the file; all of them must be in it.
  template <class T>
  std::vector<T> items(uint64_t offset, uint64_t count, const char* what) const {
    if (!is_in_file(offset, count * sizeof(T))) damaged(fmt::format("{} beyond its end", what));
    std::vector<T> result(count);
    if (file_.read(offset, result.data(), count * sizeof(T)) != count * sizeof(T)) {
      damaged(fmt::format("{} beyond its end", what));
    }
    return result;
  }

  [[nodiscard]] bool is_in_file(uint64_t offset, uint64_t bytes) const {
    return offset <= file_.size() && bytes <= file_.size() - offset;
  }

  // The segment that is loaded and has these addresses; null if there is none. `in_file`: in its
  // part that the file has.
  [[nodiscard]] const Segment* holder(uint64_t address, uint64_t bytes, bool in_file) const {
    for (const Segment& segment : loaded_) {
      const uint64_t size = in_file ? segment.p_filesz : segment.p_memsz;
      const uint64_t begin = address - segment.p_vaddr;
      if (address >= segment.p_vaddr && begin <= size && bytes <= size - begin) return &segment;
    }
    return nullptr;
  }

  void header() {
    constexpr const char* fix =
        "build it with tandem_add_plugin, or take the file out of the "
        "plugin folder";
    const Header& own = __ehdr_start;
    if (file_.size() < sizeof(Header))
      throw error("it is not a shared library (too short): {}", fix);
    header_ = items<Header>(0, 1, "its header").front();
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
      throw error("it is not a shared library (invalid ELF header): {}", fix);
    }
    const auto same = [&](int at) { return header_.e_ident[at] == own.e_ident[at]; };
    if (!same(EI_CLASS) || !same(EI_DATA) || header_.e_machine != own.e_machine) {
      throw error(
          "it was built for another kind of processor (ELF class {}, machine {}; this program has "
          "{}, {}): rebuild it on this machine",
          header_.e_ident[EI_CLASS], header_.e_machine, own.e_ident[EI_CLASS], own.e_machine);
    }
    if (header_.e_type != ET_DYN) {
      throw error("it is not a shared library (ELF type {}): {}", header_.e_type, fix);
    }
    if (header_.e_ident[EI_VERSION] != EV_CURRENT || header_.e_version != EV_CURRENT ||
        header_.e_phentsize != sizeof(Segment) || header_.e_phnum == 0) {
      damaged("its ELF header");
    }
  }

  void segments() {
    uint64_t end = 0;
    for (const Segment& segment :
         items<Segment>(header_.e_phoff, header_.e_phnum, "its table of segments")) {
      if (segment.p_type == PT_DYNAMIC) {
        if (dynamic_) damaged("two dynamic tables");
        dynamic_ = segment;
      }
      if (segment.p_type != PT_LOAD) continue;
      if (!is_in_file(segment.p_offset, segment.p_filesz)) damaged("a segment beyond its end");
      const uint64_t align = segment.p_align;
      const bool is_aligned = align <= 1 || ((align & (align - 1)) == 0 &&
                                             (segment.p_vaddr - segment.p_offset) % align == 0);
      if (!is_aligned || segment.p_filesz > segment.p_memsz || segment.p_memsz > max_span ||
          segment.p_vaddr < end || segment.p_vaddr > max_span) {
        damaged("a segment's addresses");
      }
      end = segment.p_vaddr + segment.p_memsz;
      loaded_.push_back(segment);
    }
    if (loaded_.empty()) damaged("no segment to load");
    for (const Segment& segment :
         items<Segment>(header_.e_phoff, header_.e_phnum, "its table of segments")) {
      const bool is_part = segment.p_type == PT_TLS || segment.p_type == PT_GNU_RELRO ||
                           segment.p_type == PT_DYNAMIC || segment.p_type == PT_NOTE;
      if (is_part && segment.p_filesz > 0 &&
          holder(segment.p_vaddr, segment.p_filesz, true) == nullptr) {
        damaged("a part outside of its segments");
      }
    }
  }

  void sections() const {
    if (header_.e_shoff == 0) return;  // a library needs none
    if (header_.e_shentsize != sizeof(Section)) damaged("its table of sections");
    for (const Section& section :
         items<Section>(header_.e_shoff, header_.e_shnum, "its table of sections")) {
      const bool has_bytes = section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL;
      if (has_bytes && !is_in_file(section.sh_offset, section.sh_size)) {
        damaged("a section beyond its end");
      }
    }
  }

  // The values of the dynamic table; those of a tag that it has several times, last.
  std::map<int64_t, uint64_t> dynamic_values(std::vector<uint64_t>& names) const {
    if (!dynamic_) damaged("no dynamic table");
    const Segment* where = holder(dynamic_->p_vaddr, dynamic_->p_filesz, true);
    if (where == nullptr ||
        dynamic_->p_offset - where->p_offset != dynamic_->p_vaddr - where->p_vaddr) {
      damaged("its dynamic table outside of its segments");
    }
    std::map<int64_t, uint64_t> values;
    for (const Entry& entry : items<Entry>(dynamic_->p_offset, dynamic_->p_filesz / sizeof(Entry),
                                           "its dynamic table")) {
      if (entry.d_tag == DT_NULL) return values;
      const bool is_name = entry.d_tag == DT_NEEDED || entry.d_tag == DT_SONAME ||
                           entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH;
      if (is_name) names.push_back(entry.d_un.d_val);
      values[entry.d_tag] = entry.d_un.d_val;
    }
    damaged("a dynamic table without an end");
  }

  void dynamic_table() const {
    std::vector<uint64_t> names;
    const std::map<int64_t, uint64_t> values = dynamic_values(names);
    const auto value = [&](int64_t tag) -> std::optional<uint64_t> {
      const auto found = values.find(tag);
      return found == values.end() ? std::nullopt : std::optional(found->second);
    };
    struct Table {
      int64_t address, bytes;  // tags
      uint64_t item;
      bool in_file;
    };
    constexpr std::array tables{
        Table{DT_STRTAB, DT_STRSZ, 1, true},
        Table{DT_RELA, DT_RELASZ, sizeof(ElfW(Rela)), true},
        Table{DT_REL, DT_RELSZ, sizeof(ElfW(Rel)), true},
        Table{DT_JMPREL, DT_PLTRELSZ, 1, true},
        Table{DT_INIT_ARRAY, DT_INIT_ARRAYSZ, sizeof(void*), true},
        Table{DT_FINI_ARRAY, DT_FINI_ARRAYSZ, sizeof(void*), true},
    };
    for (const Table& table : tables) {
      const auto address = value(table.address), bytes = value(table.bytes);
      if (!address && !bytes) continue;
      if (!address || !bytes || *bytes % table.item != 0 ||
          holder(*address, *bytes, table.in_file) == nullptr) {
        damaged(fmt::format("dynamic table {:#x} outside of its segments", table.address));
      }
    }
    for (const int64_t tag :
         {int64_t{DT_SYMTAB}, int64_t{DT_HASH}, int64_t{DT_GNU_HASH}, int64_t{DT_VERSYM},
          int64_t{DT_VERNEED}, int64_t{DT_VERDEF}, int64_t{DT_INIT}, int64_t{DT_FINI}}) {
      constexpr uint64_t least = 1;
      if (const auto address = value(tag); address && holder(*address, least, true) == nullptr) {
        damaged(fmt::format("dynamic table {:#x} outside of its segments", tag));
      }
    }
    const auto differs = [&](int64_t tag, uint64_t size) {
      return value(tag).value_or(size) != size;
    };
    const uint64_t kind = value(DT_PLTREL).value_or(DT_RELA);
    if (!value(DT_STRTAB) || !value(DT_SYMTAB) || differs(DT_SYMENT, sizeof(ElfW(Sym))) ||
        differs(DT_RELAENT, sizeof(ElfW(Rela))) || differs(DT_RELENT, sizeof(ElfW(Rel))) ||
        (kind != DT_RELA && kind != DT_REL)) {
      damaged("its dynamic table");
    }
    for (const uint64_t name : names) {
      if (name >= *value(DT_STRSZ)) damaged("a name outside of its table of names");
    }
  }

  InputFile file_;
  Header header_{};
  std::vector<Segment> loaded_;
  std::optional<Segment> dynamic_;
};

}  // namespace

std::string why_not_mappable(const std::filesystem::path& module) {
  try {
    Examination(module).go();
    return "";
  } catch (const Error& failure) {
    return failure.what();
  }
}

}  // namespace tandem
