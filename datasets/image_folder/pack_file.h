// A pack: many pictures in one file, with their classes, splits and names. Little-endian. A header
// of 64 bytes has "TANDEMPK", the version (1: of classes; 2: the index ends with the task, and a
// float of each picture for each label or number), the offset, length and hash of the index, and
// the levels by which larger pictures of over 8 bits a channel became such of 8; then follow the
// picture files one after another, then the index. The header is written last, so that a pack with
// a header is whole. Every picture has a hash, which is checked whenever it is read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "datasets/image_folder/opencv_formats.h"
#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

struct PackedPicture {
  uint64_t offset = 0;  // in the file
  uint32_t bytes = 0;
  uint32_t label = 0;  // into PackIndex::class_names
  uint32_t split = 0;  // into PackIndex::splits
  uint64_t hash = 0;
  std::string name;
  std::vector<float> targets;  // of other tasks than classes
};

struct PackIndex {
  int64_t task = 0;  // TANDEM_TASK_CLASSES, ...
  std::vector<std::string> class_names, splits;
  std::vector<PackedPicture> pictures;
};

constexpr size_t pack_header_bytes = 64;

[[nodiscard]] bool is_pack(picture::Bytes beginning);

struct PackHeader {
  uint64_t version = 1;
  uint64_t index_offset = 0, index_bytes = 0, index_hash = 0, file_bytes = 0;
  Levels levels;  // white is 0 if no picture was made so; black is stored as NaN if there is none
};
[[nodiscard]] std::string to_bytes(const PackHeader& header);
[[nodiscard]] std::string to_bytes(const PackIndex& index);
// Refusal (TANDEM_INVALID) that begins with `file` and the offset of the first invalid byte.
[[nodiscard]] PackHeader parse_header(picture::Bytes bytes, uint64_t file_bytes,
                                      const std::string& file);
// Reads bytes of the file; false if it does not hold so many there.
using ReadBytes = std::function<bool(uint64_t offset, unsigned char* target, size_t count)>;
// Reads the index in pieces and keeps only what it found to be right: a file may claim an index of
// any size, most of which is a hole on the disk.
[[nodiscard]] PackIndex parse_index(const ReadBytes& read, const PackHeader& header,
                                    const std::string& file);

}  // namespace tandem::image_folder
