#include "core/model/layouts.h"

#include <array>
#include <map>

#include "core/model/layer_calls.h"
#include "core/model/passes.h"

namespace tandem {

namespace {

using Options = std::vector<std::vector<tandem_layout_option>>;

// A search that starts from several plain choices and improves each layer by layer until nothing
// gets cheaper. A net is a chain with few branches, so the best start is nearly always the optimum;
// the starts of one layout throughout keep an element-wise layer from bouncing between two.
class LayoutSearch {
 public:
  LayoutSearch(const Net& net, const Options& options) : net_(net), options_(options) {}

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
  // A reorder reads and writes every byte.
  [[nodiscard]] double reorder_cost(int index, int32_t wanted) const {
    const Tensor& tensor = net_.tensors[static_cast<size_t>(index)];
    return static_cast<double>(dtype_bytes(tensor.dtype) + dtype_bytes(wanted)) *
           static_cast<double>(element_count(tensor.shape));
  }

  // What the layer's option costs by itself and at its inputs.
  [[nodiscard]] double input_cost(size_t i, const LayoutChoice& choice) const {
    const Layer& layer = net_.layers[i];
    double cost = choice[i].extra_bytes;
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
      const int tensor = layer.inputs[k];
      const int32_t made = made_layout(net_, tensor, choice);
      const int32_t made_dtype = net_.tensors[static_cast<size_t>(tensor)].dtype;
      const int32_t dtype = wanted_dtype(net_, layer, k, made_dtype);
      if (wanted_layout(net_, layer, k, choice[i], made) != made || dtype != made_dtype) {
        cost += reorder_cost(tensor, dtype);
      }
    }
    return cost;
  }

  [[nodiscard]] double cost_around(size_t i, const LayoutChoice& choice) const {
    double cost = input_cost(i, choice);
    for (const int tensor : net_.layers[i].outputs) {
      for (const int consumer : net_.tensors[static_cast<size_t>(tensor)].consumers) {
        cost += input_cost(static_cast<size_t>(consumer), choice);
      }
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
    constexpr int most_rounds = 50;
    bool changed = true;
    for (int round = 0; changed && round < most_rounds; ++round) {
      changed = false;
      for (size_t i = 0; i < choice.size(); ++i) {
        changed |= choose(i, choice, [&] { return cost_around(i, choice); });
      }
    }
    return choice;
  }

  // Sets the layer's cheapest option, an equal one only if none was cheaper; true if it changed.
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
  const Options& options_;
};

// Puts in the Reorder layers that a choice needs: one for each tensor and wanted form.
class Reorders {
 public:
  explicit Reorders(Draft& draft) : draft_(draft) {}

  // The tensor in that form, for the input of `consumer`.
  int reordered(int tensor, const Form& form, int consumer, bool takes_gradient) {
    auto [found, is_new] = made_.try_emplace({tensor, form}, insertions_.size());
    if (is_new) insertions_.push_back(reorder(tensor, form, consumer));
    Insertion& insertion = insertions_[found->second];
    // Splits came before: at most one consumer of a tensor takes a gradient.
    if (takes_gradient) {
      insertion.layer.wants_backward_data = true;
      insertion.takes_gradient = {true};
    }
    return insertion.layer.outputs[0];
  }

  void insert() { insert_layers(draft_, std::move(insertions_)); }

 private:
  Insertion reorder(int tensor, const Form& form, int consumer) {
    Net& net = draft_.net;
    const Tensor& source = net.tensors[static_cast<size_t>(tensor)];
    std::string name = source.name + "_reorder";
    if (form.layout != source.layout) name += "_" + layout_name(form.layout);
    if (form.dtype != source.dtype) name += "_" + dtype_name(form.dtype);
    Insertion insertion;
    insertion.before = consumer;
    insertion.takes_gradient = {false};
    Layer& layer = insertion.layer = make_inserted_layer(draft_, "Reorder", name);
    layer.dtype = form.dtype;
    layer.inputs = {tensor};
    layer.outputs.resize(1);
    layer.loss_weights = {0.0};
    Tensor copy;
    copy.name = layer.name;
    copy.shape = output_shapes(layer, net.phase, input_shapes(net, layer))[0];
    copy.layout = form.layout;
    copy.dtype = form.dtype;
    layer.outputs[0] = static_cast<int>(net.tensors.size());
    net.tensors.push_back(std::move(copy));
    return insertion;
  }

  Draft& draft_;
  std::map<std::pair<int, Form>, size_t> made_;
  std::vector<Insertion> insertions_;
};

Form form_of(const Net& net, int tensor) {
  const Tensor& t = net.tensors[static_cast<size_t>(tensor)];
  return {t.layout, t.dtype};
}

void insert_reorders(Draft& draft, const LayoutChoice& choice) {
  Net& net = draft.net;
  Reorders reorders(draft);
  for (size_t i = 0; i < net.layers.size(); ++i) {
    for (size_t k = 0; k < net.layers[i].inputs.size(); ++k) {
      const int tensor = net.layers[i].inputs[k];
      const Form made = form_of(net, tensor);
      const Form wanted{wanted_layout(net, net.layers[i], k, choice[i], made.layout),
                        wanted_dtype(net, net.layers[i], k, made.dtype)};
      if (wanted == made) continue;
      const bool gradient = net.layers[i].wants_backward_data && draft.takes_gradient[i][k];
      const int plain = reorders.reordered(tensor, wanted, static_cast<int>(i), gradient);
      net.layers[i].inputs[k] = plain;
    }
  }
  // Whoever reads a prediction reads it plain, in float32.
  const int prediction = net.phase == TANDEM_TEST ? find_prediction(net) : -1;
  if (prediction >= 0 && form_of(net, prediction) != Form{}) {
    (void)reorders.reordered(prediction, Form{}, static_cast<int>(net.layers.size()), false);
  }
  reorders.insert();
}

}  // namespace

LayoutChoice least_cost_layouts(const Net& net, const Options& options) {
  return LayoutSearch(net, options).best();
}

void choose_layouts(Draft& draft, const std::string& device_kind) {
  const Options options = layout_options(draft.net, *draft.registry, device_kind);
  const LayoutChoice choice = least_cost_layouts(draft.net, options);
  for (size_t i = 0; i < draft.net.tensors.size(); ++i) {
    draft.net.tensors[i].layout = made_layout(draft.net, static_cast<int>(i), choice);
  }
  insert_reorders(draft, choice);
}

}  // namespace tandem
