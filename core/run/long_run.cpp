#include "core/run/long_run.h"

#include <fmt/format.h>

#include "core/base/text/strings.h"
#include "core/model/net/net_report.h"
#include "core/session/measure.h"

namespace tandem {
namespace {

constexpr double day = 24 * 60 * 60;

}  // namespace

bool may_take_days(const TrainSetup& setup, const Session& session) {
  constexpr double slow = 5e9;  // operations a second, less than any device needs
  double of_batch = 0;
  for (const LayerSummary& layer : summarize(session.net())) {
    of_batch += layer.forward_flops + layer.backward_flops;
  }
  const auto images =
      static_cast<double>(setup.record.options.batch * setup.solver.micro_batches_per_step);
  const double of_step = of_batch / static_cast<double>(session.net().batch) * images;
  return of_step * static_cast<double>(setup.record.options.steps) > slow * day;
}

std::string long_run_text(const TrainSetup& setup, int64_t steps_left, Session& session) {
  const double of_micro_batch =
      measure(session, 1, 2, "measuring how long the run takes").step_seconds;
  const double of_step = of_micro_batch * static_cast<double>(setup.solver.micro_batches_per_step);
  const double days = of_step * static_cast<double>(steps_left) / day;
  if (!(days > 1)) return "";
  return fmt::format(
      "the run will take about {:.2g} days: {} steps of {} each, as two of them took; --epochs or "
      "--steps makes it shorter",
      days, steps_left, human_seconds(of_step));
}

}  // namespace tandem
