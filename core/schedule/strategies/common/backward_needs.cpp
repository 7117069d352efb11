#include "core/schedule/strategies/common/backward_needs.h"
#include "core/plugin/layer_questions.h"

#include <algorithm>

namespace tandem {
namespace {

bool reports(const Layer& layer) {
  return layer.has(TANDEM_LOSS) || layer.has(TANDEM_METRIC);
}

class Search {
 public:
  Search(const Net& net, const std::vector<bool>& backward)
      : net_(net), again_(net.layers.size()), wanted_(net.tensors.size()) {
    chains_.resize(net.tensors.size());
    for (size_t i = 0; i < net.layers.size(); ++i) {
      for (const int output : net.layers[i].outputs) {
        if (net.tensor(output).view_of >= 0) continue;
        chains_[size_t(root_of(output))].push_back(static_cast<int>(i));
      }
    }
    for (size_t i = 0; i < net.layers.size(); ++i) {
      if (backward[i]) goes_backward(net.layers[i], static_cast<int>(i));
    }
    while (changed_) {
      changed_ = false;
      for (size_t root = 0; root < wanted_.size(); ++root) {
        if (wanted_[root]) run_chain_again(chains_[root]);
      }
    }
  }

  [[nodiscard]] BackwardNeeds result() const {
    BackwardNeeds needs;
    needs.after.resize(net_.layers.size());
    for (size_t i = 0; i < again_.size(); ++i) {
      if (again_[i]) needs.again.push_back(static_cast<int>(i));
    }
    for (size_t root = 0; root < wanted_.size(); ++root) {
      if (!wanted_[root]) continue;
      const std::vector<int>& chain = chains_[root];
      if (chain.empty()) {
        needs.data |= static_cast<int>(root) != net_.label;
        continue;
      }
      const auto first_again = std::find_if(chain.begin(), chain.end(),
                                            [&](int layer) { return again_[size_t(layer)]; });
      if (first_again == chain.begin()) continue;
      needs.after[size_t(*std::prev(first_again))].push_back(static_cast<int>(root));
    }
    return needs;
  }

 private:
  [[nodiscard]] int root_of(int tensor) const { return net_.values_of(tensor); }
  void want(int tensor) {
    const size_t root = size_t(root_of(tensor));
    if (wanted_[root]) return;
    wanted_[root] = changed_ = true;
  }
  void run_again(int layer) {
    if (again_[size_t(layer)]) return;
    again_[size_t(layer)] = changed_ = true;
    const Layer& l = net_.layer(layer);
    for (const int input : l.inputs) want(input);
    if (l.addend >= 0) want(l.addend);
  }
  void goes_backward(const Layer& layer, int index) {
    if (!layer.has(TANDEM_SAVES_NOTHING)) run_again(index);
    if (layer.backward_reads_inputs()) {
      for (const int input : layer.inputs) want(input);
    } else {
      for (size_t i = 0; i < layer.inputs.size(); ++i) {
        if (is_label(*layer.type, i)) want(layer.inputs[i]);
      }
    }
    if (!layer.has(TANDEM_BACKWARD_READS_OUTPUTS) || reports(layer)) return;
    for (const int output : layer.outputs) want(output);
  }
  // What runs in place after a layer that runs again has to run again, too.
  void run_chain_again(const std::vector<int>& chain) {
    bool follows = false;
    for (const int layer : chain) {
      follows |= again_[size_t(layer)];
      if (follows) run_again(layer);
    }
  }

  const Net& net_;
  std::vector<bool> again_, wanted_;      // by layer; by tensor, the first of its memory
  std::vector<std::vector<int>> chains_;  // by the same: the layers that write it, in order
  bool changed_ = true;
};

}  // namespace

BackwardNeeds backward_needs(const Net& net, const std::vector<bool>& backward) {
  return Search(net, backward).result();
}

}  // namespace tandem
