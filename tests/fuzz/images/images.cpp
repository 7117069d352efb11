#include "tests/fuzz/images/images.h"

#include <algorithm>
#include <vector>

#include "datasets/image_folder/image_set.h"
#include "datasets/image_folder/list_file.h"
#include "datasets/image_folder/pack_file.h"
#include "datasets/picture/bytes.h"
#include "plugins/sdk.h"

namespace tandem::fuzz {
namespace {

// What a reader refuses is a Refusal; every other exception is a finding.
template <class Reader>
void refuses_or_reads(const Reader& reader) {
  try {
    reader();
  } catch (const sdk::Refusal& refusal) {
    check_message(refusal.what());
  }
}

picture::Bytes bytes_of(std::string_view bytes) {
  return {reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()};
}

}  // namespace

// Any bytes are an image, or one reason why not. Their number chooses what is wanted of it.
void image(std::string_view bytes) {
  const auto choice = static_cast<int>(bytes.size() % 256);
  picture::TransformOptions options;
  options.height = options.width = 1 + choice % 64;
  options.random = true;
  options.channels = choice % 2 == 0 ? 3 : 1;
  static std::vector<float> pixels(3 * 64 * 64);
  refuses_or_reads([&] {
    const image_folder::ThreadReader reader(options, {});
    const picture::Size whole = reader->open(bytes_of(bytes));
    // Large ones are slow, and no different.
    if (static_cast<int64_t>(whole.width) * whole.height > 1'000'000) return;
    image_folder::read_sample(*reader, whole, options, 0, static_cast<uint64_t>(choice),
                              pixels.data());
  });
}

// Caffe's lists and CSV.
void list(std::string_view bytes) {
  for (const char* name : {"list.txt", "list.csv"}) {
    refuses_or_reads([&] { (void)image_folder::parse_list(std::string(bytes), name); });
  }
}

// The header, and an index whose checksum is right though its contents are not.
void pack(std::string_view text) {
  const picture::Bytes bytes = bytes_of(text);
  refuses_or_reads([&] { (void)image_folder::parse_header(bytes, bytes.size(), "fuzz.pack"); });
  refuses_or_reads([&] {
    const image_folder::PackHeader header{
        1, 1 << 20, bytes.size(), picture::hash_of(bytes), bytes.size() + (1 << 20), {}};
    const auto read = [&](uint64_t offset, unsigned char* target, size_t count) {
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset - header.index_offset), count,
                  target);
      return true;
    };
    (void)image_folder::parse_index(read, header, "fuzz.pack");
  });
}

const std::map<std::string, Target>& image_targets() {
  static const std::map<std::string, Target> all{{"image", image}, {"list", list}, {"pack", pack}};
  return all;
}

}  // namespace tandem::fuzz
