#include "datasets/image_folder/pack_file.h"

#include <algorithm>

#include "datasets/picture/bytes.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::Bytes;

constexpr const char* mark = "TANDEMPK";
constexpr size_t mark_bytes = 8;
constexpr uint64_t version = 1;

void put(std::string& text, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 255U);
}
void put(std::string& text, const std::string& value) {
  put(text, value.size(), 4);
  text += value;
}

// Reads numbers and texts of the index. Refusal for a read beyond its end.
class Cursor {
 public:
  Cursor(Bytes bytes, uint64_t begin, const std::string& file)
      : bytes_(bytes), begin_(begin), file_(file) {}

  uint64_t number(size_t count) {
    require(count);
    const uint64_t value = picture::little_endian(bytes_, at_, count);
    at_ += count;
    return value;
  }
  std::string text() {
    const uint64_t length = number(4);
    require(length);
    std::string value(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return value;
  }
  // The number of following items, each of at least `least` bytes.
  uint64_t count(size_t least) {
    const uint64_t value = number(8);
    if (value > (bytes_.size() - at_) / least) refuse(value, " entries do not fit into the index");
    return value;
  }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    throw sdk::invalid(file_, ": byte ", begin_ + at_, ": ", parts...);
  }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

 private:
  void require(uint64_t count) const {
    if (count > bytes_.size() - at_) refuse("the index ends in the middle");
  }
  Bytes bytes_;
  uint64_t begin_;
  const std::string& file_;
  size_t at_ = 0;
};

std::vector<std::string> texts(Cursor& cursor) {
  std::vector<std::string> result(cursor.count(4));
  for (std::string& one : result) one = cursor.text();
  return result;
}

}  // namespace

bool is_pack(Bytes beginning) {
  return picture::has(beginning, 0, mark, mark_bytes);
}

std::string to_bytes(const PackHeader& header) {
  std::string text = mark;
  put(text, version, 8);
  put(text, header.index_offset, 8);
  put(text, header.index_bytes, 8);
  put(text, header.index_hash, 8);
  put(text, header.file_bytes, 8);
  text.resize(pack_header_bytes, '\0');
  return text;
}

std::string to_bytes(const PackIndex& index) {
  std::string text;
  for (const auto* names : {&index.class_names, &index.splits}) {
    put(text, names->size(), 8);
    for (const std::string& name : *names) put(text, name);
  }
  put(text, index.pictures.size(), 8);
  for (const PackedPicture& one : index.pictures) {
    put(text, one.offset, 8);
    put(text, one.bytes, 4);
    put(text, one.label, 4);
    put(text, one.split, 4);
    put(text, one.hash, 8);
    put(text, one.name);
  }
  return text;
}

PackHeader parse_header(Bytes bytes, uint64_t file_bytes, const std::string& file) {
  if (bytes.size() < pack_header_bytes || !is_pack(bytes)) {
    throw sdk::invalid(file, ": byte 0: this is no pack of pictures");
  }
  if (picture::little_endian(bytes, 8, 8) != version) {
    throw sdk::invalid(file, ": byte 8: a pack of version ", picture::little_endian(bytes, 8, 8),
                       "; this program reads version ", version);
  }
  const PackHeader header{
      picture::little_endian(bytes, 16, 8), picture::little_endian(bytes, 24, 8),
      picture::little_endian(bytes, 32, 8), picture::little_endian(bytes, 40, 8)};
  if (header.file_bytes != file_bytes) {
    throw sdk::invalid(file, ": byte ", std::min(header.file_bytes, file_bytes),
                       ": the pack was written with ", header.file_bytes, " bytes and has ",
                       file_bytes, " now: pack the pictures again");
  }
  if (header.index_offset < pack_header_bytes || header.index_offset > file_bytes ||
      header.index_bytes != file_bytes - header.index_offset) {
    throw sdk::invalid(file, ": byte 16: the index is not inside the pack");
  }
  return header;
}

PackIndex parse_index(Bytes bytes, const PackHeader& header, const std::string& file) {
  if (picture::hash_of(bytes) != header.index_hash) {
    throw sdk::invalid(file, ": byte ", header.index_offset,
                       ": the index is damaged (its check sum is wrong): pack the pictures again");
  }
  Cursor cursor(bytes, header.index_offset, file);
  PackIndex index;
  index.class_names = texts(cursor);
  index.splits = texts(cursor);
  constexpr size_t least_entry = 32;
  index.pictures.resize(cursor.count(least_entry));
  for (PackedPicture& one : index.pictures) {
    one.offset = cursor.number(8);
    one.bytes = static_cast<uint32_t>(cursor.number(4));
    one.label = static_cast<uint32_t>(cursor.number(4));
    one.split = static_cast<uint32_t>(cursor.number(4));
    one.hash = cursor.number(8);
    one.name = cursor.text();
    if (one.offset < pack_header_bytes || one.offset > header.index_offset ||
        one.bytes > header.index_offset - one.offset) {
      cursor.refuse("picture '", picture::beginning_of(one.name), "' is not inside the pack");
    }
    if (one.label >= index.class_names.size() || one.split >= index.splits.size()) {
      cursor.refuse("picture '", picture::beginning_of(one.name),
                    "' has a class or split that does not exist");
    }
  }
  if (!cursor.at_end()) cursor.refuse("the index continues after its last picture");
  return index;
}

}  // namespace tandem::image_folder
