// Checkpoints: the first byte tells how many 256ths of the rest are the weights, the others are
// the state.
#include "core/run/folder/checkpoint.h"

#include <algorithm>
#include <cmath>

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void checkpoint(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto share = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  const size_t middle = bytes.size() * share / 256;
  const std::filesystem::path folder =
      file_of("last.safetensors", bytes.substr(0, middle)).parent_path();
  (void)file_of("last.state.safetensors", bytes.substr(middle));
  for (const bool with_state : {false, true}) {
    Checkpoint read;
    const auto is_finite = [](float value) { return std::isfinite(value); };
    if (!accepts([&] { read = read_checkpoint(folder, "last", small_net(), with_state); })) {
      continue;
    }
    if (static_cast<int64_t>(read.weights.size()) != small_net().weight_floats) {
      fail("another number of weights");
    }
    if (!std::all_of(read.weights.begin(), read.weights.end(), is_finite)) {
      fail("weights that are not finite were accepted");
    }
  }
}

}  // namespace tandem::fuzz
