// Packs: the header, and an index whose check sum is right though its contents are not.
#include "datasets/image_folder/pack_file.h"
#include "datasets/picture/bytes.h"
#include "plugins/sdk.h"

using namespace tandem;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const picture::Bytes bytes(data, size);
  try {
    (void)image_folder::parse_header(bytes, size, "fuzz.pack");
  } catch (const sdk::Refusal&) {
  }
  try {
    const image_folder::PackHeader header{1 << 20, size, picture::hash_of(bytes), size + (1 << 20)};
    (void)image_folder::parse_index(bytes, header, "fuzz.pack");
  } catch (const sdk::Refusal&) {
  }
  return 0;
}
