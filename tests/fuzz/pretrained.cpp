// Weights of another training, in any of their formats: the weights of the net stay finite, and
// those of a refused file stay as they are.
#include "core/run/weights/pretrained.h"

#include <algorithm>
#include <cmath>

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void pretrained(std::string_view bytes) {
  const std::filesystem::path path = file_of("weights", bytes);
  const std::vector<float> before(static_cast<size_t>(small_net().weight_floats), 0.5F);
  std::vector<float> values = before;
  if (!accepts([&] { (void)to_text(read_pretrained(path, small_net(), &values), path); })) {
    if (values != before) fail("a refused file has changed weights");
  } else if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
    fail("weights that are not finite were accepted");
  }
}

}  // namespace tandem::fuzz
