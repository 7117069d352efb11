#include "datasets/image_folder/pack_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "datasets/picture/bytes.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::Bytes;

constexpr const char* mark = "TANDEMPK";
constexpr size_t mark_bytes = 8;
constexpr uint64_t of_classes = 1, of_targets = 2;  // versions

void put(std::string& text, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 255U);
}
void put(std::string& text, const std::string& value) {
  put(text, value.size(), 4);
  text += value;
}

constexpr uint64_t longest_name = 1 << 16;  // as of a line in a list
constexpr uint64_t max_picture = 1 << 30;

// Reads numbers and texts of the index. Refusal for a read beyond its end.
class Cursor {
 public:
  Cursor(const ReadBytes& read, const PackHeader& header, const std::string& file)
      : read_(read), header_(header), file_(file), hash_(header.index_bytes) {}

  uint64_t number(size_t count) {
    unsigned char bytes[8] = {};
    take(bytes, count);
    return picture::little_endian(bytes, 0, count);
  }
  std::string text(const char* what) {
    const uint64_t length = number(4);
    if (length > longest_name) {
      refuse("a name of ", length, " bytes; the longest has ", longest_name);
    }
    if (length == 0) refuse(what, " has no name");
    std::string value(length, '\0');
    take(reinterpret_cast<unsigned char*>(value.data()), length);
    return value;
  }
  // The number of following items, each of at least `least` bytes.
  uint64_t count(size_t least) {
    const uint64_t value = number(8);
    if (value > left() / least) refuse(value, " entries do not fit into the index");
    return value;
  }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    throw sdk::invalid(file_, ": byte ", header_.index_offset + at_, ": ", parts...,
                       ": pack the pictures again");
  }
  [[nodiscard]] bool at_end() const { return left() == 0; }
  // Of all bytes, once they were read.
  [[nodiscard]] uint64_t hash() const { return hash_.value(); }

 private:
  [[nodiscard]] uint64_t left() const { return header_.index_bytes - at_; }

  void take(unsigned char* target, uint64_t count) {
    if (count > left()) refuse("the index ends in the middle");
    for (uint64_t done = 0; done < count;) {
      const uint64_t in_piece = at_ % piece_bytes;
      if (in_piece == 0) read_piece();
      const uint64_t part = std::min(count - done, piece_.size() - in_piece);
      std::copy_n(piece_.data() + in_piece, part, target + done);
      done += part;
      at_ += part;
    }
  }
  void read_piece() {
    piece_.resize(std::min<uint64_t>(piece_bytes, left()));
    if (!read_(header_.index_offset + at_, piece_.data(), piece_.size())) {
      refuse("the index cannot be read: the file became shorter");
    }
    hash_.add(piece_);
  }

  static constexpr uint64_t piece_bytes = 1 << 20;
  const ReadBytes& read_;
  const PackHeader& header_;
  const std::string& file_;
  std::vector<unsigned char> piece_;
  picture::RunningHash hash_;
  uint64_t at_ = 0;
};

std::vector<std::string> texts(Cursor& cursor, const char* what) {
  std::vector<std::string> result;
  for (uint64_t left = cursor.count(4); left > 0; --left) result.push_back(cursor.text(what));
  return result;
}

PackedPicture read_picture(Cursor& cursor, const PackHeader& header, const PackIndex& index) {
  PackedPicture one;
  one.offset = cursor.number(8);
  one.bytes = static_cast<uint32_t>(cursor.number(4));
  one.label = static_cast<uint32_t>(cursor.number(4));
  one.split = static_cast<uint32_t>(cursor.number(4));
  one.hash = cursor.number(8);
  one.name = cursor.text("a picture");
  const auto refuse = [&](const auto&... what) {
    cursor.refuse("picture '", picture::beginning_of(one.name), "' ", what...);
  };
  if (one.offset < pack_header_bytes || one.offset > header.index_offset ||
      one.bytes > header.index_offset - one.offset) {
    refuse("is not inside the pack");
  }
  if (one.bytes > max_picture) refuse("has ", one.bytes, " bytes, over 1 GiB");
  if (one.label >= index.class_names.size() || one.split >= index.splits.size()) {
    refuse("has a class or split that does not exist");
  }
  return one;
}

void read_targets(Cursor& cursor, PackIndex& index) {
  index.task = static_cast<int64_t>(cursor.number(8));
  if (index.task != TANDEM_TASK_LABELS && index.task != TANDEM_TASK_VALUES) {
    cursor.refuse("task ", index.task, " is not known");
  }
  for (PackedPicture& one : index.pictures) {
    for (size_t i = 0; i < index.class_names.size(); ++i) {
      const auto value = std::bit_cast<float>(static_cast<uint32_t>(cursor.number(4)));
      if (!std::isfinite(value)) cursor.refuse("a value that is not finite");
      one.targets.push_back(value);
    }
  }
}

}  // namespace

bool is_pack(Bytes beginning) {
  return picture::has(beginning, 0, mark, mark_bytes);
}

std::string to_bytes(const PackHeader& header) {
  std::string text = mark;
  put(text, header.version, 8);
  put(text, header.index_offset, 8);
  put(text, header.index_bytes, 8);
  put(text, header.index_hash, 8);
  put(text, header.file_bytes, 8);
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  for (const double level : {header.levels.white, header.levels.black.value_or(none)}) {
    put(text, std::bit_cast<uint64_t>(level), 8);
  }
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
  if (index.task == TANDEM_TASK_CLASSES) return text;
  put(text, static_cast<uint64_t>(index.task), 8);
  for (const PackedPicture& one : index.pictures) {
    for (const float value : one.targets) put(text, std::bit_cast<uint32_t>(value), 4);
  }
  return text;
}

PackHeader parse_header(Bytes bytes, uint64_t file_bytes, const std::string& file) {
  if (bytes.size() < pack_header_bytes || !is_pack(bytes)) {
    throw sdk::invalid(file, ": byte 0: this is no pack of pictures");
  }
  const uint64_t version = picture::little_endian(bytes, 8, 8);
  if (version != of_classes && version != of_targets) {
    throw sdk::invalid(file, ": byte 8: a pack of version ", version,
                       "; this program reads versions ", of_classes, " and ", of_targets);
  }
  PackHeader header{version,
                    picture::little_endian(bytes, 16, 8),
                    picture::little_endian(bytes, 24, 8),
                    picture::little_endian(bytes, 32, 8),
                    picture::little_endian(bytes, 40, 8),
                    {}};
  if (header.file_bytes != file_bytes) {
    throw sdk::invalid(file, ": byte ", std::min(header.file_bytes, file_bytes),
                       ": the pack was written with ", header.file_bytes, " bytes and has ",
                       file_bytes, " now: pack the pictures again");
  }
  if (header.index_offset < pack_header_bytes || header.index_offset > file_bytes ||
      header.index_bytes != file_bytes - header.index_offset) {
    throw sdk::invalid(file, ": byte 16: the index is not inside the pack");
  }
  const auto white = std::bit_cast<double>(picture::little_endian(bytes, 48, 8));
  const auto black = std::bit_cast<double>(picture::little_endian(bytes, 56, 8));
  if (white == 0) return header;
  if (!std::isfinite(white) || std::isinf(black) || white <= (black > 0 ? black : 0)) {
    throw sdk::invalid(file,
                       ": byte 48: the values of white and black make no sense: pack the "
                       "pictures again");
  }
  header.levels.white = white;
  if (!std::isnan(black)) header.levels.black = black;
  return header;
}

PackIndex parse_index(const ReadBytes& read, const PackHeader& header, const std::string& file) {
  Cursor cursor(read, header, file);
  PackIndex index;
  index.class_names = texts(cursor, "a class");
  index.splits = texts(cursor, "a split");
  constexpr size_t min_entry = 32;
  for (uint64_t left = cursor.count(min_entry); left > 0; --left) {
    index.pictures.push_back(read_picture(cursor, header, index));
  }
  if (header.version == of_targets) read_targets(cursor, index);
  if (!cursor.at_end()) cursor.refuse("the index continues after its last picture");
  if (cursor.hash() != header.index_hash) {
    throw sdk::invalid(file, ": byte ", header.index_offset,
                       ": the index is damaged (its check sum is wrong): pack the pictures again");
  }
  return index;
}

}  // namespace tandem::image_folder
