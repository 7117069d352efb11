#include "datasets/image_folder/hevc_header.h"

#include <algorithm>
#include <vector>

#include "datasets/image_folder/image_headers.h"

namespace tandem::image_folder {
namespace {

using picture::big_endian;
using picture::Bytes;
using picture::has;

// Reads numbers of single bits and Exp-Golomb codes; zeros after the end.
class BitReader {
 public:
  // Of a unit of the stream, without the bytes that keep start codes out of it (00 00 03).
  explicit BitReader(Bytes unit) {
    size_t zeros = 0;
    for (const unsigned char byte : unit) {
      if (zeros >= 2 && byte == 3) {
        zeros = 0;
        continue;
      }
      zeros = byte == 0 ? zeros + 1 : 0;
      bytes_.push_back(byte);
    }
  }

  uint64_t bits(int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      const bool is_set = !has_ended() && (bytes_[at_ / 8] >> (7 - at_ % 8) & 1U) != 0;
      value = value << 1U | static_cast<uint64_t>(is_set);
    }
    return value;
  }
  void skip(size_t count) { at_ += count; }

  uint64_t exp_golomb() {
    int zeros = 0;
    while (zeros < 32 && !has_ended() && bits(1) == 0) ++zeros;
    return (uint64_t{1} << static_cast<unsigned>(zeros)) - 1 + bits(zeros);
  }

  [[nodiscard]] bool has_ended() const { return at_ >= 8 * bytes_.size(); }

 private:
  std::vector<unsigned char> bytes_;
  size_t at_ = 0;
};

void skip_profile_and_level(BitReader& reader, uint64_t sub_layers) {
  constexpr size_t profile = 88, level = 8;
  reader.skip(profile + level);
  std::vector<bool> has_profile, has_level;
  for (uint64_t i = 0; i < sub_layers; ++i) {
    has_profile.push_back(reader.bits(1) != 0);
    has_level.push_back(reader.bits(1) != 0);
  }
  if (sub_layers > 0) reader.skip(2 * (8 - sub_layers));
  for (uint64_t i = 0; i < sub_layers; ++i) {
    reader.skip((has_profile[i] ? profile : 0) + (has_level[i] ? level : 0));
  }
}

bool is_sound(Bytes sequence_parameter_set) {
  BitReader reader(sequence_parameter_set);
  reader.skip(16 + 4);  // the header of the unit, the number of the video parameter set
  const uint64_t sub_layers = reader.bits(3);
  reader.skip(1);
  skip_profile_and_level(reader, sub_layers);
  reader.exp_golomb();
  if (reader.exp_golomb() == 3) reader.skip(1);  // three colour planes
  const uint64_t width = reader.exp_golomb(), height = reader.exp_golomb();
  if (reader.bits(1) != 0) {
    for (int i = 0; i < 4; ++i) reader.exp_golomb();  // the window that is shown
  }
  const uint64_t luma_depth = 8 + reader.exp_golomb(), chroma_depth = 8 + reader.exp_golomb();
  reader.exp_golomb();
  for (uint64_t i = reader.bits(1) != 0 ? 0 : sub_layers; i <= sub_layers; ++i) {
    for (int k = 0; k < 3; ++k) reader.exp_golomb();
  }
  // Powers of two: the smallest coding block, the coding tree block, transform blocks.
  const uint64_t coding = 3 + reader.exp_golomb(), tree = coding + reader.exp_golomb();
  const uint64_t least = 2 + reader.exp_golomb(), most = least + reader.exp_golomb();
  const uint64_t inter_depth = reader.exp_golomb(), intra_depth = reader.exp_golomb();
  if (reader.has_ended()) return true;
  constexpr uint64_t deepest = 16, largest_transform = 5, largest_tree = 6;
  if (luma_depth > deepest || chroma_depth > deepest || tree > largest_tree) return false;
  if (least > tree) return false;
  const uint64_t in_block = (uint64_t{1} << coding) - 1;
  return (width & in_block) == 0 && (height & in_block) == 0 && least <= coding &&
         most <= std::min(tree, largest_transform) && inter_depth <= tree - least &&
         intra_depth <= tree - least;
}

// `box`: a HEVCDecoderConfigurationRecord (ISO/IEC 14496-15).
bool has_sound_units(Bytes box) {
  constexpr size_t header = 22;
  constexpr uint64_t sequence_parameters = 33;
  if (box.size() <= header) return true;
  size_t at = header + 1;
  for (uint64_t arrays = box[header]; arrays > 0 && at + 3 <= box.size(); --arrays) {
    const uint64_t type = box[at] & 63U;
    uint64_t units = big_endian(box, at + 1, 2);
    at += 3;
    for (; units > 0 && at + 2 <= box.size(); --units) {
      const size_t length = big_endian(box, at, 2);
      at += 2;
      if (length > box.size() - at) return true;
      if (type == sequence_parameters && !is_sound(box.subspan(at, length))) return false;
      at += length;
    }
  }
  return true;
}

}  // namespace

bool has_sound_hevc_header(Bytes heic) {
  constexpr size_t searched = size_t{1} << 20;
  const Bytes header = heif_header(heic);
  for (size_t at = 4; at + 4 <= std::min(header.size(), searched); ++at) {
    if (!has(header, at, "hvcC", 4)) continue;
    const uint64_t length = big_endian(header, at - 4, 4);
    if (length < 8 || length > header.size() - (at - 4)) continue;
    if (!has_sound_units(header.subspan(at + 4, length - 8))) return false;
  }
  return true;
}

}  // namespace tandem::image_folder
