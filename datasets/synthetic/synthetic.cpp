#include "datasets/synthetic/synthetic.h"

#include <cmath>
#include <numbers>
#include <sstream>

namespace tandem::synthetic {
namespace {

constexpr const char* block = "synthetic_param";
constexpr uint64_t noise_key = 0x6e6f697365ULL;
constexpr uint64_t offset_key = 0x6f6666736574ULL;
constexpr uint64_t pattern_key = 0x7061747465726eULL;
// Samples read the noise from one of so many places.
constexpr int64_t noise_offsets = 1 << 18;
// Of pixels around zero, as images are once their mean is taken away.
constexpr float pattern_amplitude = 40;

// cos(2 pi f x / length + phase) at each x.
std::vector<float> wave(int64_t length, float frequency, float phase, float amplitude) {
  std::vector<float> values(static_cast<size_t>(length));
  const float step = 2 * std::numbers::pi_v<float> * frequency / static_cast<float>(length);
  for (int64_t x = 0; x < length; ++x) {
    values[static_cast<size_t>(x)] = amplitude * std::cos(step * static_cast<float>(x) + phase);
  }
  return values;
}

int64_t pick(const sdk::Attributes& attributes, const char* name, int64_t expected,
             int64_t otherwise) {
  const int64_t written = attributes.integer(name);
  if (written == 0) return expected > 0 ? expected : otherwise;
  if (expected > 0 && written != expected) {
    throw sdk::invalid("parameter '", name, "' is ", written, ", but the net expects ", expected);
  }
  return written;
}

uint32_t split_number(const std::string& split) {
  if (split == "train") return 0;
  if (split == "val") return 1;
  if (split == "test") return 2;
  throw sdk::invalid("split '", split, "' is not one of train, val, test");
}

}  // namespace

std::vector<sdk::Parameter> Synthetic::parameters() {
  const char* ignored = "accepted, so that a net's options for images fit; changes nothing";
  return {
      sdk::integer(block, "class_count").by_default("10").range(1, 1e6).help("number of classes"),
      sdk::integer(block, "size").by_default("1280").range(1, 1e12).help("training samples"),
      sdk::integer(block, "val_size")
          .by_default("320")
          .range(1, 1e12)
          .help("samples of the val and test splits"),
      sdk::integer(block, "channels").by_default("0").range(0, 4096).help("0: the net's, or 3"),
      sdk::integer(block, "height").by_default("0").range(0, 16384).help("0: the net's, or 32"),
      sdk::integer(block, "width").by_default("0").range(0, 16384).help("0: the net's, or 32"),
      sdk::number(block, "noise")
          .by_default("40")
          .range(0, 1e6)
          .help("standard deviation of the noise; the patterns reach 40"),
      sdk::number(block, "scale").by_default("1").help("every pixel is multiplied by it"),
      sdk::boolean(block, "mirror").by_default("false").help(ignored),
      sdk::word(block, "mean").by_default("").help(ignored),
      sdk::word(block, "color").by_default("bgr").help(ignored),
      sdk::integer(block, "resize").by_default("0").help(ignored),
      sdk::number(block, "val_fraction").by_default("0.2").help(ignored),
  };
}

Synthetic::Synthetic(const tandem_dataset_request& request, const sdk::Attributes& attributes) {
  shape_.n = 1;
  shape_.c = pick(attributes, "channels", request.shape.c, 3);
  shape_.h = pick(attributes, "height", request.shape.h, 32);
  shape_.w = pick(attributes, "width", request.shape.w, 32);
  split_ = split_number(request.split);
  size_ = attributes.integer(split_ == 0 ? "size" : "val_size");
  scale_ = static_cast<float>(attributes.number("scale"));
  read_classes(request, attributes.is_set("class_count") || request.class_names == nullptr
                            ? attributes.integer("class_count")
                            : 0);
  for (uint32_t i = 0; i < request.input_count; ++i) {
    tandem_shape input = request.inputs[i];
    if (input.c == 0) input.c = shape_.c;
    if (input.h == 0) input.h = shape_.h;
    if (input.w == 0) input.w = shape_.w;
    input_sizes_.push_back(sdk::count(input));
  }
  make_noise(static_cast<float>(attributes.number("noise")));
}

// `class_count` 0: as many as the model has.
void Synthetic::read_classes(const tandem_dataset_request& request, int64_t class_count) {
  if (request.class_names == nullptr) {
    for (int64_t i = 0; i < class_count; ++i) class_names_.push_back(sdk::text("class_", i));
    return;
  }
  std::istringstream lines(request.class_names);
  for (std::string line; std::getline(lines, line);) class_names_.push_back(line);
  if (class_count != 0 && class_count != this->class_count()) {
    throw sdk::invalid("parameter 'class_count' is ", class_count, ", but the model has ",
                       this->class_count(), " classes");
  }
}

// The sum of four random bytes is near enough to normal, and takes one of Philox's words.
void Synthetic::make_noise(float amplitude) {
  noise_.resize(static_cast<size_t>(sdk::count(shape_) + noise_offsets));
  const float factor = amplitude / std::sqrt(4 * 65535.0F / 12);
  for (size_t i = 0; i < noise_.size(); i += 4) {
    const tandem_random4 four =
        tandem_random_block(noise_key, 0, 0, 0, static_cast<uint32_t>(i / 4));
    for (size_t k = 0; k < 4 && i + k < noise_.size(); ++k) {
      const uint32_t bits = four.value[k];
      const uint32_t sum =
          (bits & 255U) + (bits >> 8 & 255U) + (bits >> 16 & 255U) + (bits >> 24 & 255U);
      noise_[i + k] = factor * (static_cast<float>(sum) - 510);
    }
  }
}

const char* Synthetic::class_name(int64_t index) const {
  return class_names_.at(static_cast<size_t>(index)).c_str();
}

const char* Synthetic::sample_name(int64_t index) const {
  constexpr const char* splits[] = {"train", "val", "test"};
  const std::lock_guard lock(names_mutex_);
  std::string& name = names_[index];
  if (name.empty()) name = sdk::text("synthetic/", splits[split_], "/", index);
  return name.c_str();
}

void Synthetic::get(int64_t index, uint64_t /*seed*/, float* pixels, float* label) const {
  const int64_t number = index % class_count();
  const tandem_random4 place =
      tandem_random_block(offset_key, 0, split_, static_cast<uint64_t>(index), 0);
  const float* noise = noise_.data() + place.value[0] % static_cast<uint32_t>(noise_offsets);
  for (int64_t c = 0; c < shape_.c; ++c) {
    const tandem_random4 form = tandem_random_block(pattern_key, 0, static_cast<uint32_t>(c),
                                                    static_cast<uint64_t>(number), 0);
    const auto pi = std::numbers::pi_v<float>;
    const std::vector<float> down =
        wave(shape_.h, static_cast<float>(form.value[0] % 4), pi * tandem_uniform(form.value[1]),
             scale_ * pattern_amplitude);
    const std::vector<float> across = wave(shape_.w, static_cast<float>(1 + form.value[2] % 4),
                                           2 * pi * tandem_uniform(form.value[3]), 1);
    for (int64_t y = 0; y < shape_.h; ++y) {
      const float height = down[static_cast<size_t>(y)];
      for (int64_t x = 0; x < shape_.w; ++x) {
        *pixels++ = scale_ * *noise++ + height * across[static_cast<size_t>(x)];
      }
    }
  }
  *label = static_cast<float>(number);
}

void Synthetic::get_inputs(int64_t index, uint64_t /*seed*/, float* const* inputs) const {
  for (size_t i = 0; i < input_sizes_.size(); ++i) {
    if (input_sizes_[i] == 1) {
      inputs[i][0] = static_cast<float>(index % class_count());
      continue;
    }
    const tandem_random4 place =
        tandem_random_block(offset_key, 1 + i, split_, static_cast<uint64_t>(index), 0);
    size_t at = place.value[0] % noise_.size();
    for (int64_t k = 0; k < input_sizes_[i]; ++k) {
      inputs[i][k] = scale_ * noise_[at];
      if (++at == noise_.size()) at = 0;
    }
  }
}

}  // namespace tandem::synthetic

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  tandem::sdk::Plugin plugin(host, "synthetic", "1.0");
  return plugin.dataset<tandem::synthetic::Synthetic>().table();
}
