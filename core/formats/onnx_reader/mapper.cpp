#include "core/formats/onnx_reader/mapper.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constants.h"
#include "core/formats/onnx_reader/operators.h"

namespace tandem {
namespace {

// "/layer1/conv1/Conv" -> "layer1/conv1"
std::string name_of_node(const OnnxNode& node) {
  std::string name = node.name.empty() ? node.outputs.front() : node.name;
  while (name.starts_with('/')) name.erase(0, 1);
  const size_t slash = name.rfind('/');
  if (slash != std::string::npos && name.substr(slash + 1).starts_with(node.operation)) {
    name.resize(slash);
  }
  return name.empty() ? node.operation : name;
}

}  // namespace

// ---- what a node reads

OnnxConstant OnnxMapper::constant(const OnnxNode& node, size_t input) const {
  if (!node.has_input(input)) return nullptr;
  const auto made = computed_.find(node.inputs[input]);
  if (made != computed_.end()) return made->second;
  const auto found = file_.constants.find(node.inputs[input]);
  return found == file_.constants.end() ? nullptr : found->second;
}

bool OnnxMapper::is_constant(const OnnxNode& node, size_t input) const {
  return constant(node, input) != nullptr;
}

OnnxNetValue OnnxMapper::value(const OnnxNode& node, size_t input) {
  OnnxNetValue found = operand(node, input);
  const std::vector<int64_t> promised = found.promised();
  found.expanded.clear();
  return repeated(std::move(found), promised);
}

OnnxNetValue OnnxMapper::operand(const OnnxNode& node, size_t input) const {
  const auto found = node.has_input(input) ? values_.find(node.inputs[input]) : values_.end();
  if (found == values_.end()) throw error("input {} must be computed, not constant", input);
  return found->second;
}

OnnxConstant OnnxMapper::required(const OnnxNode& node, size_t input) const {
  OnnxConstant found = constant(node, input);
  if (found == nullptr) throw error("input {} must be constant", input);
  return found;
}

std::vector<int64_t> OnnxMapper::integers(const OnnxNode& node, size_t input) const {
  if (!node.has_input(input)) return {};
  return integers_of(*required(node, input));
}

// ---- layers

std::string OnnxMapper::layer_name(const OnnxNode& node,
                                   const std::vector<size_t>& parameters) const {
  for (const size_t input : parameters) {
    const OnnxConstant found = constant(node, input);
    if (found != nullptr && !found->owner().empty()) return found->owner();
  }
  return name_of_node(node);
}

Message& OnnxMapper::add(const std::string& name, const std::string& type,
                         const std::vector<std::string>& bottoms) {
  return add(name, type, bottoms, {});
}

Message& OnnxMapper::add(const std::string& name, const std::string& type,
                         const std::vector<std::string>& bottoms,
                         const std::vector<std::string>& tops) {
  std::string unique = name;
  for (int i = 2; !names_.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
  Message& layer = result_.net.add_block("layer");
  layer.add("name", unique, true);
  layer.add("type", type, true);
  for (const std::string& bottom : bottoms) {
    layer.add("bottom", bottom, true);
    read_tops_.insert(bottom);
  }
  if (tops.empty()) layer.add("top", unique, true);
  for (const std::string& top : tops) {
    layer.add("top", top, true);
    made_tops_.insert(top);
  }
  return layer;
}

void OnnxMapper::weight(Message& layer, const std::string& name, std::vector<int64_t> shape,
                        std::vector<float> values, const OnnxTensor* origin, double decay) {
  const bool is_trained = origin != nullptr && origin->is_trained();
  if (is_trained && origin->is_derived) {
    note(
        "the file computes some values from parameters alone, as tables of positions or "
        "standardized weights are: they are trained in place of those parameters");
  }
  if (origin != nullptr && !is_trained) kept_.push_back(layer.find("name")->text + "." + name);
  Message& rule = layer.add_block("param");
  rule.add("lr_mult", is_trained ? "1" : "0");
  rule.add("decay_mult", fmt::format("{}", is_trained ? decay : 0));
  ArrayFile::Array& array = result_.arrays.arrays[layer.find("name")->text + "." + name] = {};
  array.name = layer.find("name")->text + "." + name;
  array.shape = std::move(shape);
  array.values = std::move(values);
}

void OnnxMapper::set(const OnnxNode& node, OnnxNetValue value, size_t output) {
  constexpr int64_t most = int64_t{1} << 31;
  if (count_of({value.net[0], value.net[1], value.net[2]}, most) < 1) {
    throw error("its result has {}x{}x{} values for each image", value.net[0], value.net[1],
                value.net[2]);
  }
  if (output < node.outputs.size()) values_[node.outputs[output]] = std::move(value);
}

void OnnxMapper::note(const std::string& text) {
  if (std::find(result_.notes.begin(), result_.notes.end(), text) == result_.notes.end()) {
    result_.notes.push_back(text);
  }
}

std::vector<std::string> OnnxMapper::cut(const std::string& top, int64_t axis,
                                         const std::vector<int64_t>& points,
                                         const std::string& name) {
  const std::string key = fmt::format("{} {} {}", top, axis, fmt::join(points, ","));
  if (const auto made = cuts_.find(key); made != cuts_.end()) return made->second;
  std::vector<std::string> tops;
  for (size_t i = 0; i <= points.size(); ++i) tops.push_back(fmt::format("{}/{}", name, i));
  for (std::string& made : tops) {
    const std::string wished = made;
    for (int i = 2; !names_.insert(made).second; ++i) made = fmt::format("{}_{}", wished, i);
  }
  Message& block = add(name, "Slice", {top}, tops).add_block("slice_param");
  block.add("axis", fmt::format("{}", axis));
  for (const int64_t point : points) block.add("slice_point", fmt::format("{}", point));
  cuts_[key] = tops;
  return tops;
}

void OnnxMapper::count_convolution(bool is_batch_norm) {
  ++(is_batch_norm ? batch_norms_ : convolutions_);
}

// ---- the walk

void OnnxMapper::mark_needed(const std::string& output) {
  needed_.insert(output);
  for (auto node = file_.nodes.rbegin(); node != file_.nodes.rend(); ++node) {
    const bool is_needed = std::any_of(node->outputs.begin(), node->outputs.end(),
                                       [&](auto& name) { return needed_.contains(name); });
    if (is_needed) needed_.insert(node->inputs.begin(), node->inputs.end());
  }
}

void OnnxMapper::map_node(const OnnxNode& node) {
  std::vector<OnnxConstant> constants;
  bool all_constant = true, all_known = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    constants.push_back(constant(node, i));
    all_constant = all_constant && (constants.back() != nullptr || !node.has_input(i));
    all_known = all_known && !unknown_.contains(node.inputs[i]);
  }
  const OnnxOperator known = find_onnx_operator(node.domain, node.operation);
  try {
    if (all_known && all_constant) {
      if (const OnnxConstant result = computed(node, constants)) {
        budget_.take(*result);
        computed_[node.outputs[0]] = result;
        return;
      }
    }
    if (all_known && node.domain.empty() && node.operation == "Shape") {
      computed_[node.outputs[0]] = shape_constant(node, operand(node, 0).promised());
      return;
    }
    if (all_known && node.domain.empty() && node.operation == "Size") {
      auto size = std::make_shared<OnnxTensor>();
      size->is_integer = true;
      size->integers = {value(node, 0).count()};
      computed_[node.outputs[0]] = std::move(size);
      return;
    }
    if (known != nullptr && all_known) {
      known(*this, node);
      return;
    }
    // What follows a node without a layer counts only if it has none itself.
    const bool may_be_constant = node.domain.empty() && can_be_computed(node.operation);
    if (known == nullptr && (all_known || !may_be_constant))
      throw error("Tandem has no layer for it");
  } catch (const Error& reason) {
    const std::string operation =
        node.domain.empty() ? node.operation : node.domain + "." + node.operation;
    refused_.push_back({operation, fmt::format("{}: {}", node.title(), reason.what())});
  }
  unknown_.insert(node.outputs.begin(), node.outputs.end());
  unknown_.erase("");
}

void OnnxMapper::refuse() const {
  std::map<std::string, int> counts;
  for (const Refusal& refusal : refused_) ++counts[refusal.operation];
  std::string text;
  std::set<std::string> shown;
  for (const Refusal& refusal : refused_) {
    if (!shown.insert(refusal.operation).second) continue;
    const int more = counts[refusal.operation] - 1;
    text +=
        fmt::format("{}{}{}", text.empty() ? "" : "; ", refusal.text,
                    more > 0 ? fmt::format(" (and {} more of {})", more, refusal.operation) : "");
  }
  throw error("ONNX file '{}' has {} {} without a layer here: {}", file_.path.string(),
              refused_.size(), refused_.size() == 1 ? "node" : "nodes", text);
}

void OnnxMapper::silence_unread() {
  std::vector<std::string> unread;
  for (const std::string& top : made_tops_) {
    if (!read_tops_.contains(top)) unread.push_back(top);
  }
  if (unread.empty()) return;
  Message& layer = result_.net.add_block("layer");
  layer.add("name", "unused", true);
  layer.add("type", "Silence", true);
  for (const std::string& top : unread) layer.add("bottom", top, true);
}

double OnnxMapper::largest_pixel() const {
  constexpr double most_of_shares = 2, least_of_bytes = 16, factor_of_bytes = 1.0 / 64;
  const double mean = -shift_ / factor_;  // the pixel that becomes zero
  if (mean >= least_of_bytes && mean < 255) return 255;
  if (mean > 0 && mean < most_of_shares) return 1;
  return mean == 0 && factor_ > 0 && factor_ <= factor_of_bytes ? 255 : 0;
}

void OnnxMapper::note_shared_weights() {
  std::map<std::string, int> uses;
  for (const OnnxNode& node : file_.nodes) {
    const bool has_weights = node.operation == "Conv" || node.operation == "ConvTranspose" ||
                             node.operation == "Gemm" || node.operation == "MatMul";
    if (!has_weights || !node.has_input(1)) continue;
    const auto found = file_.constants.find(node.inputs[1]);
    if (found != file_.constants.end() && found->second->count() > 1) {
      const std::string& parameter = found->second->parameter;
      ++uses[parameter.empty() ? found->first : parameter];
    }
  }
  for (const auto& [name, count] : uses) {
    if (count > 1) {
      note(fmt::format("'{}' is the weight of {} nodes: each trains a copy of its own", name,
                       count));
    }
  }
}

void OnnxMapper::note_kept() {
  constexpr size_t most = 8;
  if (kept_.empty()) return;
  const size_t more = kept_.size() - std::min(most, kept_.size());
  kept_.resize(kept_.size() - more);
  note(
      fmt::format("some arrays keep their values, which the file has as constants, not as "
                  "parameters: {}{}",
                  fmt::join(kept_, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
}

OnnxNetValue OnnxMapper::map(OnnxNetValue input, const std::string& output) {
  names_ = {"data", "label", "accuracy", "accuracy_top5", "loss", "unused"};
  if (input.top != "data") names_.insert({"input", "std"});
  set_prepared(input.top, 1, 0);
  values_[file_.inputs.front().name] = std::move(input);
  mark_needed(output);
  for (const OnnxNode& node : file_.nodes) {
    const bool is_needed = std::any_of(node.outputs.begin(), node.outputs.end(),
                                       [&](auto& name) { return needed_.contains(name); });
    if (is_needed) map_node(node);
  }
  if (!refused_.empty()) refuse();
  const auto found = values_.find(output);
  if (found == values_.end()) {
    throw error("ONNX file '{}': its output '{}' does not depend on its input", file_.path.string(),
                output);
  }
  note_shared_weights();
  note_kept();
  const OnnxNetValue result = plain(found->second, {found->second.count(), 1, 1});
  read_tops_.insert(result.top);
  silence_unread();
  constexpr int64_t many = 3;
  if (convolutions_ > many && batch_norms_ == 0) {
    note(
        "the file has no BatchNorm: if its export has folded it into the convolutions, a file "
        "that trains better is made by torch.onnx.export(..., "
        "training=TrainingMode.PRESERVE, do_constant_folding=False) of the model in training mode");
  }
  return result;
}

}  // namespace tandem
