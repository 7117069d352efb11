#include "core/run/folder/first_state.h"

#include <array>
#include <cstdint>
#include <vector>

namespace tandem {
namespace {

void broadcast_floats(const Communicator& ranks, std::vector<float>& values, const char* what) {
  auto count = static_cast<int64_t>(values.size());
  ranks.broadcast(&count, sizeof(count), what);
  values.resize(size_t(count));
  ranks.broadcast(values.data(), count * static_cast<int64_t>(sizeof(float)), what);
}

}  // namespace

void share_first_state(const Communicator& ranks, FirstState& state) {
  std::array<int64_t, 3> numbers{state.is_resumed ? 1 : 0, state.checkpoint.step,
                                 state.checkpoint.metadata["test_due"] == "1" ? 1 : 0};
  ranks.broadcast(numbers.data(), sizeof(numbers), "the state that the run begins with");
  state.is_resumed = numbers[0] != 0;
  state.checkpoint.step = numbers[1];
  state.checkpoint.metadata["test_due"] = numbers[2] != 0 ? "1" : "0";
  broadcast_floats(ranks, state.checkpoint.weights, "the first weights");
  broadcast_floats(ranks, state.checkpoint.state, "the first state of the solver");
  ranks.meet("the first step");
}

}  // namespace tandem
