#include "core/formats/onnx_reader/reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constants.h"
#include "core/formats/onnx_reader/file.h"
#include "core/formats/onnx_reader/mapper.h"
#include "core/formats/onnx_reader/patterns.h"
#include "core/model/adapted/models.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

Error unusable(const OnnxFile& file, const std::string& why) {
  return error("ONNX file '{}' cannot be used: {}", file.path.string(), why);
}

// The input as an image: N, C, H, W, or N, H, W, C of a net of TensorFlow's.
struct ImageInput {
  int64_t c = 0, h = 0, w = 0;
  bool channels_last = false;
};

ImageInput image_input(const OnnxFile& file, std::vector<std::string>& notes) {
  constexpr int64_t usual_side = 224, most_channels = 4, max_side = 16384;
  if (file.inputs.size() != 1) {
    throw unusable(file,
                   fmt::format("it has {} inputs; a net here reads one image", file.inputs.size()));
  }
  const auto& [name, shape, is_real, is_bytes] = file.inputs.front();
  if (!is_real && !is_bytes) {
    throw unusable(file, fmt::format("its input '{}' has whole numbers, and no bytes", name));
  }
  if (shape.size() != 4) {
    throw unusable(file, fmt::format("its input '{}' has {} axes; an image has N, C, H, W", name,
                                     shape.size()));
  }
  const auto is_few = [](int64_t extent) { return extent >= 1 && extent <= most_channels; };
  ImageInput image;
  image.channels_last = is_few(shape[3]) && !is_few(shape[1]);
  image.c = shape[image.channels_last ? 3 : 1];
  image.h = shape[image.channels_last ? 1 : 2];
  image.w = shape[image.channels_last ? 2 : 3];
  if (image.c == -1) image.c = 3;
  for (int64_t* side : {&image.h, &image.w}) {
    if (*side != -1) continue;
    *side = usual_side;
    notes.push_back(
        fmt::format("the file's images have any size: {} is taken (--image-size)", usual_side));
  }
  for (const int64_t extent : {image.c, image.h, image.w}) {
    if (extent < 1 || extent > max_side) {
      throw unusable(file, fmt::format("its images are {}x{}x{}", image.c, image.h, image.w));
    }
  }
  return image;
}

// A net of this program's export says how its images are prepared, and divides itself.
bool is_own_export(const OnnxFile& file) {
  return file.producer == "tandem";
}

// What an export of this program says that its outputs are; "" of another file.
std::string task_of(const OnnxFile& file) {
  const auto task = file.metadata.find("task");
  return is_own_export(file) && task != file.metadata.end() ? task->second : "";
}

const OnnxNode* maker_of(const OnnxFile& file, const std::string& value, const char* operation) {
  const auto makes = [&](const OnnxNode& node) {
    return !node.outputs.empty() && node.outputs.front() == value && node.operation == operation;
  };
  const auto found = std::find_if(file.nodes.begin(), file.nodes.end(), makes);
  return found == file.nodes.end() ? nullptr : &*found;
}

std::vector<float> constant_of(const OnnxFile& file, const OnnxNode& node, size_t input) {
  const auto found =
      node.has_input(input) ? file.constants.find(node.inputs[input]) : file.constants.end();
  return found == file.constants.end() ? std::vector<float>() : found->second->floats;
}

// An export gives numbers in their own units, and probabilities of labels where that was asked
// for: the net here ends before that.
void leave_out_units(const OnnxFile& file, std::string& scores, OnnxImport& result) {
  result.task = task_of(file);
  if (result.task == "multilabel") {
    const OnnxNode* last = maker_of(file, scores, "Sigmoid");
    if (last != nullptr) scores = last->inputs.front();
  }
  if (result.task != "regression") return;
  const OnnxNode* shift = maker_of(file, scores, "Add");
  const OnnxNode* spread =
      shift == nullptr ? nullptr : maker_of(file, shift->inputs.front(), "Mul");
  if (spread == nullptr) return;
  std::vector<float> means = constant_of(file, *shift, 1);
  std::vector<float> deviations = constant_of(file, *spread, 1);
  if (means.empty() || means.size() != deviations.size()) return;
  result.target_means = std::move(means);
  result.target_deviations = std::move(deviations);
  scores = spread->inputs.front();
}

// The scores before a Softmax at the end, which the loss has itself. It may be before a node that
// only makes a row of them: that node then reads what the Softmax read.
std::string scores_of(OnnxFile& file, std::vector<std::string>& notes) {
  if (file.outputs.empty()) throw unusable(file, "it has no output");
  if (file.outputs.size() > 1) {
    notes.push_back(fmt::format("of the file's {} outputs the first, '{}', is taken for the scores",
                                file.outputs.size(), file.outputs.front()));
  }
  std::string output = file.outputs.front();
  std::string* reader = &output;
  for (auto node = file.nodes.rbegin(); node != file.nodes.rend(); ++node) {
    if (node->outputs.empty() || node->outputs.front() != *reader || node->inputs.empty()) continue;
    const std::string& operation = node->operation;
    const bool is_softmax = operation == "Softmax" || operation == "LogSoftmax";
    const bool makes_row =
        operation == "Flatten" || operation == "Reshape" || operation == "Squeeze";
    if (is_softmax) {
      notes.push_back(
          fmt::format("the {} at the end is left out: the loss has its own", operation));
      *reader = node->inputs.front();
    } else if (operation == "Identity") {
      *reader = node->inputs.front();
    } else if (makes_row) {
      reader = &node->inputs.front();
    } else {
      if (operation == "Sigmoid" && task_of(file).empty()) {
        notes.push_back(
            "the file ends with a Sigmoid, which stays: the loss has a Softmax after it");
      }
      break;
    }
  }
  return output;
}

void add_data(Message& net, const ImageInput& image, bool divides) {
  Message& data = net.add_block("layer");
  data.add("name", "data", true);
  data.add("type", "Input", true);
  data.add("top", "data", true);
  data.add("top", "label", true);
  Message& block = data.add_block("input_param");
  const auto add_shape = [&](const std::vector<int64_t>& extents) {
    Message& shape = block.add_block("shape");
    for (const int64_t extent : extents) shape.add("dim", fmt::format("{}", extent));
  };
  constexpr int64_t usual_batch = 32;
  add_shape({usual_batch, image.c, image.h, image.w});
  add_shape({usual_batch, 1});
  if (!divides) return;
  Message& layer = net.add_block("layer");
  layer.add("name", "std", true);
  layer.add("type", "Scale", true);
  layer.add("bottom", "data", true);
  layer.add("top", "input", true);
  layer.add_block("param").add("lr_mult", "0");
}

void add_head(Message& net, const std::string& type, const std::string& name,
              const std::string& scores, int64_t top_k) {
  Message& layer = net.add_block("layer");
  layer.add("name", name, true);
  layer.add("type", type, true);
  layer.add("bottom", scores, true);
  layer.add("bottom", "label", true);
  layer.add("top", name, true);
  if (type == "Accuracy") layer.add_block("include").add("phase", "TEST");
  if (top_k > 1) layer.add_block("accuracy_param").add("top_k", fmt::format("{}", top_k));
}

OnnxNetValue input_value(const ImageInput& image, const std::string& top) {
  OnnxNetValue value;
  value.top = top;
  value.net = {image.c, image.h, image.w};
  value.set_plain({1, image.c, image.h, image.w});
  if (image.channels_last) {
    value.axes = {value.axes[0], value.axes[2], value.axes[3], value.axes[1]};
  }
  return value;
}

// The names in an array of JSON; none for another text.
std::vector<std::string> names_from(const std::string& text) {
  const auto tree = nlohmann::json::parse(text, nullptr, false);
  std::vector<std::string> names;
  for (const auto& name : tree.is_array() ? tree : nlohmann::json::array()) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

constexpr std::array<double, 3> usual_std{0.229, 0.224, 0.225};

// `may_divide`: by a first layer. `largest_pixel`: that of images which the file itself prepares
// further, 0 if it does not tell; nothing if it does not prepare them.
OnnxImport import_net(const fs::path& path, const std::array<double, 3>& std, bool may_divide,
                      std::optional<double>* largest_pixel) {
  OnnxFile file = read_onnx_file(path);
  OnnxImport result;
  const ImageInput image = image_input(file, result.notes);
  std::string scores = scores_of(file, result.notes);
  if (fold_constants(file)) {
    result.notes.push_back(
        "the file has no initializers: its constants of several values are taken for parameters");
  }
  leave_out_units(file, scores, result);
  recognize_patterns(file);
  OnnxMapper mapper(file);
  const bool is_bytes = file.inputs.front().is_bytes;
  const bool divides = may_divide && image.c == 3 && !is_own_export(file) && !is_bytes;
  const std::string name = path.stem().string();
  mapper.result().net.add("name", name, true);
  add_data(mapper.result().net, image, divides);
  const OnnxNetValue last = mapper.map(input_value(image, divides ? "input" : "data"), scores);
  const bool may_be_one = !result.task.empty() && result.task != "labels";
  if (last.count() < (may_be_one ? 1 : 2) || last.extents().back() != last.count()) {
    throw unusable(file, fmt::format("its output is {}; a net here gives a row of class scores",
                                     fmt::join(last.extents(), "x")));
  }
  constexpr int64_t top = 5;
  OnnxMapped& mapped = mapper.result();
  add_head(mapped.net, "Accuracy", "accuracy", last.top, 1);
  if (last.count() > top) add_head(mapped.net, "Accuracy", "accuracy_top5", last.top, top);
  add_head(mapped.net, "SoftmaxWithLoss", "loss", last.top, 1);
  result.net =
      parse_net(parse_text_format(write_text_format(mapped.net), path.string()), path.string());
  result.arrays = std::move(mapped.arrays);
  if (divides) {
    ArrayFile::Array& deviations = result.arrays.arrays["std.weight"] = {};
    deviations.name = "std.weight";
    deviations.shape = {3};
    for (const double value : std) deviations.values.push_back(static_cast<float>(1 / value));
  }
  if (!is_own_export(file) && !is_bytes && mapper.prepares()) {
    *largest_pixel = image.c == 3 ? mapper.largest_pixel() : 0;
  }
  result.metadata = file.metadata;
  if (is_own_export(file)) {
    result.preparation = file.metadata["preprocessing"];
    result.class_names = names_from(file.metadata["classes"]);
  }
  if (is_bytes) {
    const bool is_bgr = file.metadata["Image.BitmapPixelFormat"].starts_with("Bgr");
    const char* channels = image.c != 3 ? "gray" : is_bgr ? "bgr" : "rgb";
    result.preparation = fmt::format(R"({{"scale": 1, "channels": "{}"}})", channels);
    result.notes.push_back(fmt::format(
        "its input has bytes: images are given as they are, {}, 0 to 255, whatever is beside it",
        channels));
  }
  result.notes.insert(result.notes.end(), mapped.notes.begin(), mapped.notes.end());
  return result;
}

}  // namespace

OnnxImport import_onnx(const fs::path& path, const std::optional<std::array<double, 3>>& std) {
  std::optional<double> largest_pixel;
  OnnxImport result = import_net(path, std.value_or(usual_std), true, &largest_pixel);
  if (!largest_pixel) return result;
  std::string note = "the file prepares its images itself, by constants that are not trained";
  if (std) {
    note += ", besides what is told of them";
  } else if (*largest_pixel > 0) {
    result = import_net(path, usual_std, false, &largest_pixel);
    result.largest_pixel = *largest_pixel;
    note += fmt::format(", so that nothing else is taken from pixels of 0 to {}", *largest_pixel);
  } else {
    note +=
        ": if it expects other pixels, 'tandem train' takes --data-option scale=X and "
        "--data-option mean=B,G,R";
  }
  result.notes.insert(result.notes.begin(), note);
  return result;
}

NetDefinition read_net_file(const std::string& name_or_path) {
  return is_onnx_file(name_or_path) ? import_onnx(name_or_path, std::nullopt).net
                                    : read_model(name_or_path);
}

}  // namespace tandem
