// Pictures of every form: any bytes are a picture, or one reason why not. The first byte chooses
// what is wanted of it.
#include "datasets/image_folder/image_set.h"
#include "plugins/sdk.h"

using namespace tandem;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  picture::TransformOptions options;
  options.height = options.width = 1 + data[0] % 64;
  options.random = true;
  options.channels = data[0] % 2 == 0 ? 3 : 1;
  static std::vector<float> pixels(3 * 64 * 64);
  try {
    image_folder::Reader& reader = image_folder::thread_reader(options.channels == 1);
    const picture::Size whole = reader.open({data + 1, size - 1});
    // Large ones are slow, and no different.
    if (static_cast<int64_t>(whole.width) * whole.height > 1'000'000) return 0;
    image_folder::read_sample(reader, whole, options, 0, data[0], pixels.data());
  } catch (const sdk::Refusal&) {
  }
  return 0;
}
