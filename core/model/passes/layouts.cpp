#include "core/model/passes/passes.h"

#include <algorithm>
#include <compare>
#include <map>

#include "core/model/net/layer_calls.h"
#include "core/model/passes/results.h"
#include "core/plugin/layer_questions.h"
#include "core/plugin/registry.h"

namespace tandem {

namespace {

// The options of each layer, best first, and one option for each.
using LayoutOptions = std::vector<std::vector<tandem_layout_option>>;
using LayoutChoice = std::vector<tandem_layout_option>;

// How the elements of a tensor are stored.
struct Form {
  int32_t layout = TANDEM_NCHW, dtype = TANDEM_FLOAT32;
  auto operator<=>(const Form&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
};

bool is_label(const Net& net, const Layer& layer, size_t input) {
  return layer.inputs[input] == net.label || tandem::is_label(*layer.type, input);
}

bool is_shape_only(const Layer& layer, size_t input) {
  return input_role(*layer.type, input) == TANDEM_INPUT_SHAPE;
}

bool is_pixel(const Shape& shape) {
  return shape.h == 1 && shape.w == 1;
}

bool can_have(const Shape& shape, int32_t layout) {
  const int64_t block = layout == TANDEM_NCHW8C ? 8 : layout == TANDEM_NCHW16C ? 16 : 1;
  const bool is_known = block > 1 || layout == TANDEM_NCHW || layout == TANDEM_NHWC;
  return is_pixel(shape) || (is_known && shape.c % block == 0);
}

bool can_have(const Net& net, const Layer& layer, const tandem_layout_option& option) {
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    const Shape& shape = net.tensor(layer.inputs[i]).shape;
    if (is_label(net, layer, i) || is_shape_only(layer, i)) continue;
    if (!can_have(shape, option.input)) return false;
  }
  return std::all_of(layer.outputs.begin(), layer.outputs.end(),
                     [&](int tensor) { return can_have(net.tensor(tensor).shape, option.output); });
}

// The layout options of the layer's kernel that its tensors can have. `shapes`: of all tensors.
std::vector<tandem_layout_option> ask(const Net& net, const Layer& layer,
                                      const tandem_kernel& kernel,
                                      const std::vector<Shape>& shapes) {
  LayerBinding binding(net, layer, shapes);
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    binding.inputs[i].dtype = wanted_dtype(net, layer, i, net.tensor(layer.inputs[i]).dtype);
  }
  std::vector<tandem_layout_option> options;
  const Asking note(layer, "layouts", kernel.layouts);
  require_answer(layer, ask_layouts(kernel, binding.raw, options), "its layouts");
  std::erase_if(options,
                [&](const tandem_layout_option& option) { return !can_have(net, layer, option); });
  if (options.empty()) {
    throw layer_error(layer,
                      "its kernel on device kind '{}' offers no layout that its "
                      "tensors can have",
                      kernel.device_kind);
  }
  return options;
}

// A tensor of one pixel has the same bytes in every layout and is always called NCHW.
int32_t effective_layout(const Shape& shape, int32_t layout) {
  return is_pixel(shape) ? static_cast<int32_t>(TANDEM_NCHW) : layout;
}

// The layout in which a layer reads an input that has the layout `given`; labels are plain.
int32_t wanted_layout(const Net& net, const Layer& layer, size_t input,
                      const tandem_layout_option& option, int32_t given) {
  if (is_shape_only(layer, input)) return given;
  if (is_label(net, layer, input)) return TANDEM_NCHW;
  const Shape& shape = net.tensor(layer.inputs[input]).shape;
  return effective_layout(shape, option.input);
}

// The layout in which a tensor is written; the data and the labels are plain.
int32_t made_layout(const Net& net, int tensor, const LayoutChoice& choice) {
  const Tensor& made = net.tensor(tensor);
  if (made.producer < 0) return TANDEM_NCHW;
  return effective_layout(made.shape, choice[size_t(made.producer)].output);
}

LayoutOptions layout_options(const Net& net, const Registry& registry,
                             const std::string& device_kind) {
  LayoutOptions options;
  const std::vector<Shape> shapes = net.shapes(net.batch);
  for (const Layer& layer : net.layers) {
    options.push_back(ask(net, layer, kernel_of(layer, registry, device_kind), shapes));
  }
  return options;
}

// A search that starts from several simple choices and improves each, one layer at a time, until
// the cost stays the same. A net is a chain with few branches, so the best start is nearly always
// the optimum. The starts with one layout throughout keep an element-wise layer from switching
// between two.
class LayoutSearch {
 public:
  LayoutSearch(const Net& net, const LayoutOptions& options)
      : net_(net), options_(options), uses_(net.tensors.size()) {
    for (size_t i = 0; i < net.layers.size(); ++i) {
      const std::vector<int>& inputs = net.layers[i].inputs;
      for (size_t k = 0; k < inputs.size(); ++k) {
        uses_[size_t(inputs[k])].push_back({i, k});
      }
    }
  }

  LayoutChoice best() const {
    LayoutChoice best = improved(greedy());
    double least = cost(best);
    for (const int32_t layout : {TANDEM_NCHW16C, TANDEM_NCHW8C, TANDEM_NHWC, TANDEM_NCHW}) {
      const LayoutChoice candidate = improved(uniform(layout));
      const double candidate_cost = cost(candidate);
      if (candidate_cost < least) {
        least = candidate_cost;
        best = candidate;
      }
    }
    return best;
  }

 private:
  struct Use {
    size_t layer, input;
  };

  // The bytes of the reorder of one input of a layer, which reads and writes each; 0 if there is
  // none.
  [[nodiscard]] double cost_of(const Use& use, const LayoutChoice& choice) const {
    const Layer& layer = net_.layers[use.layer];
    const int tensor = layer.inputs[use.input];
    const Form made{made_layout(net_, tensor, choice), net_.tensor(tensor).dtype};
    const Form wanted{wanted_layout(net_, layer, use.input, choice[use.layer], made.layout),
                      wanted_dtype(net_, layer, use.input, made.dtype)};
    if (wanted == made) return 0;
    return static_cast<double>(dtype_bytes(made.dtype) + dtype_bytes(wanted.dtype)) *
           static_cast<double>(element_count(net_.tensor(tensor).shape));
  }

  // The cost of the layer's option and of the reorders of its inputs.
  [[nodiscard]] double input_cost(size_t i, const LayoutChoice& choice) const {
    double cost = choice[i].extra_bytes;
    for (size_t k = 0; k < net_.layers[i].inputs.size(); ++k) cost += cost_of({i, k}, choice);
    return cost;
  }

  // All that depends on the layer's option.
  [[nodiscard]] double cost_around(size_t i, const LayoutChoice& choice) const {
    double cost = input_cost(i, choice);
    for (const int tensor : net_.layers[i].outputs) {
      for (const Use& use : uses_[size_t(tensor)]) cost += cost_of(use, choice);
    }
    return cost;
  }

  [[nodiscard]] double cost(const LayoutChoice& choice) const {
    double sum = 0;
    for (size_t i = 0; i < choice.size(); ++i) sum += input_cost(i, choice);
    return sum;
  }

  [[nodiscard]] LayoutChoice greedy() const {
    LayoutChoice choice;
    for (const auto& options : options_) choice.push_back(options.front());
    for (size_t i = 0; i < choice.size(); ++i) {
      choose(i, choice, [&] { return input_cost(i, choice); });
    }
    return choice;
  }

  [[nodiscard]] LayoutChoice uniform(int32_t layout) const {
    LayoutChoice choice;
    for (const auto& options : options_) {
      const tandem_layout_option* chosen = nullptr;
      for (const tandem_layout_option& option : options) {
        if (option.output != layout) continue;
        if (chosen == nullptr || (chosen->input != layout && option.input == layout)) {
          chosen = &option;
        }
      }
      choice.push_back(chosen == nullptr ? options.front() : *chosen);
    }
    return choice;
  }

  [[nodiscard]] LayoutChoice improved(LayoutChoice choice) const {
    constexpr int max_rounds = 50;
    bool changed = true;
    for (int round = 0; changed && round < max_rounds; ++round) {
      changed = false;
      for (size_t i = 0; i < choice.size(); ++i) {
        changed |= choose(i, choice, [&] { return cost_around(i, choice); });
      }
    }
    return choice;
  }

  // Sets the layer's cheapest option and returns whether it changed; of equal ones, the present
  // one.
  template <class Cost>
  bool choose(size_t i, LayoutChoice& choice, const Cost& cost_now) const {
    tandem_layout_option best = choice[i];
    double least = cost_now();
    bool changed = false;
    for (const tandem_layout_option& option : options_[i]) {
      choice[i] = option;
      const double candidate = cost_now();
      if (candidate < least) {
        least = candidate;
        best = option;
        changed = true;
      }
    }
    choice[i] = best;
    return changed;
  }

  const Net& net_;
  const LayoutOptions& options_;
  std::vector<std::vector<Use>> uses_;  // of each tensor
};

Form form_of(const Tensor& tensor) {
  return {tensor.layout, tensor.dtype};
}

// A layer that gives the tensor in another form.
Insertion reorder(Draft& draft, int tensor, const Form& form, int consumer) {
  Net& net = draft.net;
  const Tensor& source = net.tensor(tensor);
  std::string name = source.name + "_reorder";
  if (form.layout != source.layout) name += "_" + layout_name(form.layout);
  if (form.dtype != source.dtype) name += "_" + dtype_name(form.dtype);
  Insertion insertion = make_insertion(draft, "Reorder", name, consumer, tensor, 1);
  insertion.takes_gradient = {false};
  Layer& layer = insertion.layer;
  layer.dtype = form.dtype;
  const Shape shape = output_shapes(layer, net.phase, input_shapes(net, layer))[0];
  layer.outputs[0] = add_tensor(net, layer.name, shape);
  net.tensor(layer.outputs[0]).layout = form.layout;
  net.tensor(layer.outputs[0]).dtype = form.dtype;
  return insertion;
}

// Inserts the Reorder layers that a choice needs: one for each tensor and wanted form.
void insert_reorders(Draft& draft, const LayoutChoice& choice) {
  Net& net = draft.net;
  std::map<std::pair<int, Form>, size_t> made;
  std::vector<Insertion> insertions;
  const auto reordered = [&](int tensor, const Form& form, size_t consumer) -> Insertion& {
    const auto [found, is_new] = made.try_emplace({tensor, form}, insertions.size());
    if (is_new) insertions.push_back(reorder(draft, tensor, form, static_cast<int>(consumer)));
    return insertions[found->second];
  };
  for (size_t i = 0; i < net.layers.size(); ++i) {
    Layer& layer = net.layers[i];
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
      const Form given = form_of(net.tensor(layer.inputs[k]));
      const Form wanted{wanted_layout(net, layer, k, choice[i], given.layout),
                        wanted_dtype(net, layer, k, given.dtype)};
      if (wanted == given) continue;
      Insertion& insertion = reordered(layer.inputs[k], wanted, i);
      // Splits were inserted before, so at most one consumer of a tensor takes a gradient.
      if (draft.writes_gradient(i, k)) {
        insertion.layer.wants_backward_data = true;
        insertion.takes_gradient = {true};
      }
      layer.inputs[k] = insertion.layer.outputs[0];
    }
  }
  // A prediction is read in NCHW and float32.
  const int prediction = net.phase == TANDEM_TEST ? find_prediction(net) : -1;
  if (prediction >= 0 && form_of(net.tensor(prediction)) != Form{}) {
    (void)reordered(prediction, Form{}, net.layers.size());
  }
  insert_layers(draft, std::move(insertions));
}

}  // namespace

void choose_layouts(Draft& draft, const std::string& device_kind) {
  const LayoutOptions options = layout_options(draft.net, *draft.registry, device_kind);
  const LayoutChoice choice = LayoutSearch(draft.net, options).best();
  for (size_t i = 0; i < draft.net.tensors.size(); ++i) {
    draft.net.tensors[i].layout = made_layout(draft.net, static_cast<int>(i), choice);
  }
  insert_reorders(draft, choice);
}

}  // namespace tandem
