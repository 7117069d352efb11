// Lists of pictures, Caffe's and CSV: any bytes are a list, or one message with a line.
#include "datasets/image_folder/list_file.h"
#include "plugins/sdk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"list.txt", "list.csv"}) {
    try {
      (void)tandem::image_folder::parse_list(text, name);
    } catch (const tandem::sdk::Refusal&) {
    }
  }
  return 0;
}
