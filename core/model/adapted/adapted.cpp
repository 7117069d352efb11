#include "core/model/adapted/adapted.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/model/adapted/classes.h"
#include "core/model/file/batch_norm.h"
#include "core/model/file/fields.h"
#include "core/model/file/net_phases.h"

namespace tandem {

namespace {

// The first `shape { dim: ... }` of an Input layer; false if it has none.
bool set_shape(LayerDefinition& layer, int64_t size) {
  for (Field& param : layer.body.fields) {
    if (param.name != "input_param" || !param.message) continue;
    for (Field& shape : own_block(param).fields) {
      if (shape.name != "shape" || !shape.message) continue;
      const Shape old = shape_of(shape, layer.title());
      Message& dims = own_block(shape);
      dims.fields.clear();
      for (const int64_t dim : {old.n, old.c, size, size}) dims.add("dim", fmt::format("{}", dim));
      return true;
    }
  }
  return false;
}

// The size to which images are stretched before a crop of `crop`, for one of `size`; 0: no crop.
void set_stretched(LayerDefinition& layer, int64_t crop, int64_t size) {
  for (Field& field : layer.body.fields) {
    if (!field.message) continue;
    const bool has_resize = field.message->find("resize_param") != nullptr;
    if (has_resize)
      std::erase_if(own_block(field).fields,
                    [](const Field& f) { return f.name == "resize_param"; });
    for (const char* name : {"new_height", "new_width"}) {
      const Field* old = field.message->find(name);
      if (old == nullptr) continue;
      const int64_t value = positive_of(*old, layer.title());
      const auto scaled = crop == 0 ? size : std::max(size, (value * size + crop / 2) / crop);
      for (Field& f : own_block(field).fields) {
        if (f.name == name) f.text = fmt::format("{}", scaled);
      }
    }
  }
}

// `crop_size` may be in the layer's own block, as in old files.
void set_crop(LayerDefinition& layer, int64_t size) {
  int64_t crop = 0;
  for (const Field& field : layer.body.fields) {
    const Field* old = field.message ? field.message->find("crop_size") : nullptr;
    if (old != nullptr) crop = integer_of(*old, layer.title());
  }
  set_stretched(layer, crop, size);
  for (Field& field : layer.body.fields) {
    if (!field.message || field.message->find("crop_size") == nullptr) continue;
    std::erase_if(own_block(field).fields, [](const Field& f) { return f.name == "crop_size"; });
  }
  set_in_block(layer.body, "transform_param", "crop_size", fmt::format("{}", size));
}

bool is_top1(const LayerDefinition& layer) {
  return layer.type == "Accuracy" && top_k(layer) == 1;
}

}  // namespace

NetDefinition with_image_size(const NetDefinition& net, int64_t size) {
  NetDefinition result = net;
  bool found = !result.input_shapes.empty();
  if (found) result.input_shapes.front().h = result.input_shapes.front().w = size;
  for (LayerDefinition& layer : result.layers) {
    if (!layer.is_data() || layer.type == "DummyData") continue;
    if (found && layer.type == "Input") continue;  // of another input
    if (layer.type == "Input") {
      found = set_shape(layer, size);
    } else {
      set_crop(layer, size);
      found = true;
    }
  }
  if (found) return result;
  throw error("--image-size {}: net '{}' has no input of images{}", size, net.name,
              in_file({net.file, 0, 0}));
}

NetDefinition with_batch_norm_eps(const NetDefinition& net, double eps) {
  NetDefinition result = net;
  for (LayerDefinition& layer : result.layers) {
    if (!is_batch_norm(layer.type)) continue;
    set_in_block(layer.body, "batch_norm_param", "eps", fmt::format("{}", eps));
  }
  return result;
}

std::string training_accuracy(const NetDefinition& net) {
  const auto found = std::find_if(
      net.layers.rbegin(), net.layers.rend(),
      [](const LayerDefinition& layer) { return is_top1(layer) && layer.in_phase(TANDEM_TRAIN); });
  return found == net.layers.rend() || found->tops.empty() ? "" : found->tops.front();
}

NetDefinition with_training_accuracy(const NetDefinition& net) {
  if (!training_accuracy(net).empty()) return net;
  NetDefinition result = net;
  // Heads inside the net come before its own.
  const auto found = std::find_if(result.layers.rbegin(), result.layers.rend(), is_top1);
  if (found == result.layers.rend()) return result;
  const auto makes = [&](const std::string& bottom) {
    return std::any_of(result.layers.begin(), result.layers.end(), [&](const auto& layer) {
      return layer.in_phase(TANDEM_TRAIN) &&
             std::count(layer.tops.begin(), layer.tops.end(), bottom) > 0;
    });
  };
  if (std::all_of(found->bottoms.begin(), found->bottoms.end(), makes)) {
    *found = kept_to(*found, true, true);
  }
  return result;
}

}  // namespace tandem
