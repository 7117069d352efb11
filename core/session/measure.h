// Measuring the steps of a session: real, paced or simulated, from the same events. `tandem
// profile`, `tandem plan` and Profiler use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/session/rank_traces.h"
#include "core/session/session.h"
#include "include/tandem/profile.h"

namespace tandem {

struct Measurement {
  double step_seconds = 0;  // median distance between the ends of neighboring steps
  double fastest = 0, slowest = 0;
  // The same by the host's clock. The events of a paced machine are in model time.
  double wall_seconds = 0;
  std::vector<TraceEvent> events;  // of all measured steps
  std::vector<TraceEvent> median_step;
  std::vector<StageTime> stages;  // of the step with the median time, on rank 0 of all ranks
  StepParts parts;                // of that step
  // On rank 0 of several: the events of all ranks; those above are its own.
  std::optional<JointTrace> of_ranks;
  double images_per_second = 0;
  // Where steps run as captured graphs, the times of whole steps above are of graphs, and this is
  // the time of a step that is issued task by task, as the events are; else 0.
  double live_step_seconds = 0;
  std::string graphs_given_up;  // why steps do not run as graphs although they should
  // Of a session that models its plan: what step_seconds_without_communication() is of others.
  std::optional<double> without_communication_seconds;
  int steps = 0;             // measured ones: fewer than were asked for where the watch ended it
  double first_step_at = 0;  // seconds of this process when the first step was issued; 0 on `sim`

  // What reports show: of all ranks, or of the plan of the only one.
  [[nodiscard]] const Plan& shown_plan(const Plan& own) const {
    return of_ranks ? of_ranks->plan : own;
  }
  [[nodiscard]] const std::vector<TraceEvent>& shown_events() const {
    return of_ranks ? of_ranks->events : events;
  }
  [[nodiscard]] std::vector<TraceRank> shown_ranks() const {
    return of_ranks ? of_ranks->ranks : std::vector<TraceRank>();
  }
};

// Runs `warm_up` steps, then `steps` measured ones of the session's training plan, on one batch of
// synthetic data that stays in place (so no input is awaited). Works on every backend; on `sim` the
// times are virtual. A session that models its plan has the times of one step. Called by all ranks;
// the times of whole steps are each rank's own. The session's watch hears of each step of a real or
// paced device; `what`: what it is told. Where it ends the work before a step is measured: Error.
[[nodiscard]] Measurement measure(Session& session, int warm_up, int steps,
                                  const std::string& what = "measuring steps");

// Every task's mean time in the measured steps, by cost_key.
[[nodiscard]] CostTable costs_of(const Session& session, const Net& net, const Plan& plan,
                                 const std::vector<TraceEvent>& events);

// The step of this plan, in a session with these options, without copies between devices. The
// difference to the step is exposed communication.
[[nodiscard]] double step_seconds_without_communication(Registry& registry,
                                                        const NetDefinition& definition,
                                                        SessionOptions options, const Plan& plan,
                                                        int warm_up, int steps);

// Bandwidth and latency of the copies between devices in these events; zeros if there are none.
[[nodiscard]] LinkSpec link_of(const Plan& plan, const std::vector<TraceEvent>& events);

// Measures a few steps of a session with the options `measured`, task by task and without testing.
// Writes their costs, the algorithms chosen and the topology found into `options`, and returns the
// link by the steps' copies.
LinkSpec measure_costs(Registry& registry, const NetDefinition& definition, SessionOptions measured,
                       int steps, SessionOptions& options);

}  // namespace tandem
