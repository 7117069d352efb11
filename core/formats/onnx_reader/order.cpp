#include "core/formats/onnx_reader/order.h"

#include <unordered_map>

#include "core/base/error.h"

namespace tandem {
namespace {

class Sorting {
 public:
  explicit Sorting(OnnxFile& file)
      : file_(file), next_input_(file.nodes.size(), 0), states_(file.nodes.size(), State::open) {
    for (const auto& [name, constant] : file.constants) makers_[name] = none;
    for (const OnnxFile::Input& input : file.inputs) makers_[input.name] = none;
    for (size_t node = 0; node < file.nodes.size(); ++node) {
      for (const std::string& output : file.nodes[node].outputs) {
        if (output.empty() || makers_.emplace(output, node).second) continue;
        throw refusal(
            fmt::format("{} makes '{}', which there is already", file.nodes[node].title(), output));
      }
    }
  }

  void run() {
    for (size_t node = 0; node < states_.size(); ++node) place_with_makers(node);
    for (const std::string& output : file_.outputs) {
      if (makers_.contains(output)) continue;
      throw refusal(fmt::format("its output '{}' is made by no node", output));
    }
    std::vector<OnnxNode> sorted;
    for (const size_t node : placed_) sorted.push_back(std::move(file_.nodes[node]));
    file_.nodes = std::move(sorted);
  }

 private:
  enum class State { open, waits, placed };
  static constexpr size_t none = -1;

  [[nodiscard]] Error refusal(const std::string& why) const {
    return error("ONNX file '{}' cannot be used: {}", file_.path.string(), why);
  }

  // The node that must come before this one; none if all have their places.
  size_t next_maker(size_t node) {
    const OnnxNode& reader = file_.nodes[node];
    while (next_input_[node] < reader.inputs.size()) {
      const std::string& input = reader.inputs[next_input_[node]++];
      if (input.empty()) continue;
      const auto found = makers_.find(input);
      if (found == makers_.end()) {
        throw refusal(fmt::format("{} reads '{}', which is missing", reader.title(), input));
      }
      if (found->second == none || states_[found->second] == State::placed) continue;
      if (states_[found->second] == State::open) return found->second;
      throw refusal(fmt::format("{} reads '{}', which depends on what it makes (a cycle)",
                                reader.title(), input));
    }
    return none;
  }

  // Without recursion: a file may have any number of nodes in a row.
  void place_with_makers(size_t node) {
    std::vector<size_t> waiting;
    const auto wait = [&](size_t one) {
      states_[one] = State::waits;
      waiting.push_back(one);
    };
    if (states_[node] == State::open) wait(node);
    while (!waiting.empty()) {
      const size_t last = waiting.back(), maker = next_maker(last);
      if (maker != none) {
        wait(maker);
        continue;
      }
      states_[last] = State::placed;
      placed_.push_back(last);
      waiting.pop_back();
    }
  }

  OnnxFile& file_;
  std::unordered_map<std::string, size_t> makers_;  // none: an input or a constant
  std::vector<size_t> next_input_;
  std::vector<State> states_;
  std::vector<size_t> placed_;
};

}  // namespace

void sort_nodes(OnnxFile& file) {
  Sorting(file).run();
}

}  // namespace tandem
