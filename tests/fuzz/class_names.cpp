// The file with a class name on each line, for a list with class numbers.
#include "core/data/dataset.h"
#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void class_names(std::string_view bytes) {
  static const std::filesystem::path list = [] {
    (void)file_of("0.ppm", "P6 1 1 255 abc");
    (void)file_of("1.ppm", "P6 1 1 255 def");
    return file_of("numbers.txt", "0.ppm 0\n1.ppm 1\n0.ppm 2\n");
  }();
  const std::filesystem::path names = file_of("classes.txt", bytes);
  accepts([&] {
    DatasetOptions options;
    options.source = list.string();
    options.shape = {1, 3, 4, 4};
    options.parameters = {{"classes", names.string()}};
    const Dataset dataset(registry(), options);
    for (const std::string& name : dataset.class_names()) {
      if (name.empty()) fail("a class without a name");
    }
  });
}

}  // namespace tandem::fuzz
