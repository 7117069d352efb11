// What goes with published weights: timm's config.json, and the rules for the names of arrays.
#include "core/run/weights/published.h"

#include <cmath>
#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {
namespace {

namespace fs = std::filesystem;

// A folder in that of the process.
fs::path folder_of(const char* name) {
  const fs::path folder = file_of("unused", "").parent_path() / name;
  fs::create_directories(folder);
  return folder;
}

// A safetensors file.
std::string two_arrays() {
  const std::string header =
      R"({"conv.weight":{"dtype":"F32","shape":[2,3,2,2],"data_offsets":[0,96]},)"
      R"("fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[96,108]}})";
  std::string size(8, '\0');
  size[0] = static_cast<char>(header.size());
  return size + header + std::string(108, '\0');
}

}  // namespace

void timm_config(std::string_view bytes) {
  static const fs::path folder = folder_of("timm");
  static const fs::path weights = file_of("timm/model.safetensors", "");
  (void)file_of("timm/config.json", bytes);
  accepts([&] {
    const auto published = find_published(folder, "");
    if (!published || published->file != weights) fail("a folder of timm's is not seen as one");
    (void)to_text(*published);
    for (const auto& [name, value] : published->data_parameters()) {
      if (value.empty()) fail("an empty value of '" + name + "'");
    }
    for (const auto& values : {published->mean, published->std}) {
      for (const double value : values) {
        if (!(value >= 0 && value <= 1)) fail("a mean or deviation that no image has");
      }
    }
    const int64_t size = published->image_size;
    if (size < 1 || published->resize_for(size) < size) fail("an impossible size");
  });
}

// Weights whose names the rules change.
void name_rules(std::string_view bytes) {
  static const fs::path weights = file_of("rules.safetensors", two_arrays());
  static const fs::path models = folder_of("models/pretrained").parent_path();
  static const fs::path common = file_of("models/pretrained/torch.names", "fc.* ip.*\n");
  setenv("TANDEM_MODEL_PATH", models.c_str(), 1);
  (void)file_of("models/pretrained/fuzzed.names", bytes);
  PublishedWeights published;
  published.file = weights;
  published.architecture = "fuzzed";
  published.net = common.parent_path() / "fuzzed.prototxt";
  std::vector<float> values(static_cast<size_t>(small_net().weight_floats), 0.5F);
  accepts([&] { (void)read_published(published, small_net(), &values); });
  accepts([&] { (void)find_published(weights, "fuzzed"); });
  for (const float value : values) {
    if (!std::isfinite(value)) fail("weights that are not finite were accepted");
  }
}

}  // namespace tandem::fuzz
