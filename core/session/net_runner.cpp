#include "core/session/net_runner.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/model/passes/results.h"

namespace tandem {

NetRunner::NetRunner(Session& session) : session_(session), allocator_(session.allocator()) {
  const Net& net = session.testing().net;
  if (net.prediction < 0) {
    throw error(
        "net '{}' gives no class scores: it has neither a loss with labels nor an accuracy; "
        "`tandem test` measures its losses",
        net.name);
  }
  std::vector<Shape> more;  // targets, which scores do not depend on
  for (const int input : net.more_inputs) {
    if (is_targets(net, input)) {
      more.push_back(net.tensor(input).shape);
      more.back().n = 1;
      continue;
    }
    throw error("net '{}' reads '{}' besides the pictures, which has no values here", net.name,
                net.tensor(input).name);
  }
  Shape row = net.tensor(net.data).shape;
  row.n = 1;
  const Shape& scores = net.tensor(net.prediction).shape;
  row_elements_ = element_count(row);
  classes_ = scores.c * scores.h * scores.w;
  layout_ = make_batch_layout(session.options().batch, row, more);
  memory_ = static_cast<std::byte*>(allocator_.allocate(layout_.bytes));
  std::memset(memory_, 0, size_t(layout_.bytes));
}

NetRunner::~NetRunner() {
  allocator_.free(memory_);
}

void NetRunner::run(const float* rows, int64_t count, float* scores) {
  for (int64_t done = 0; done < count; done += layout_.rows) {
    run_batch(rows + done * row_elements_, std::min(layout_.rows, count - done),
              scores + done * classes_);
  }
}

void NetRunner::run_batch(const float* rows, int64_t count, float* scores) {
  Phase& phase = session_.testing();
  const tandem_step step{0, 0, 0.0F, static_cast<float>(count), 0, 0};
  std::memcpy(memory_, &step, sizeof(step));
  auto* labels = reinterpret_cast<float*>(memory_ + layout_.label_offset);
  for (int64_t row = 0; row < layout_.rows; ++row) labels[row] = row < count ? 0.0F : -1.0F;
  std::memcpy(memory_ + layout_.data_offset, rows, size_t(count * row_elements_) * sizeof(float));
  phase.executor->issue(0, {{phase.batch_buffer, memory_}});
  phase.executor->drain();
  std::memcpy(scores, phase.predictions(0), size_t(count * classes_) * sizeof(float));
}

}  // namespace tandem
