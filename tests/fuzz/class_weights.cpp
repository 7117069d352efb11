// The file of --class-weights, for a data set of ten classes.
#include "core/run/setup/setup.h"

#include <cmath>

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {
namespace {

const Dataset& ten_classes() {
  static const Dataset dataset(registry(), [] {
    DatasetOptions options;
    options.source = "synthetic";
    options.shape = {1, 3, 4, 4};
    options.parameters = {{"size", "20"}};
    return options;
  }());
  return dataset;
}

}  // namespace

void class_weights(std::string_view bytes) {
  const std::filesystem::path path = file_of("weights.txt", bytes);
  for (const std::string& text : {path.string(), std::string(bytes.substr(0, 64))}) {
    accepts([&] {
      for (const float weight : read_class_weights(text, ten_classes())) {
        if (!(weight >= 0) || !std::isfinite(weight)) fail("a weight that is none was accepted");
      }
    });
  }
}

}  // namespace tandem::fuzz
