// Running a plan for its times: real, paced or simulated, from the same events. What `tandem
// profile`, `tandem plan` and the AlexNet app show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/schedule/report/report.h"
#include "core/train/session.h"

namespace tandem {

// The parts of docs/design/strategies.md §1, seconds: forward a, backward of the FC part b, of the
// conv part c, moving and applying the FC gradients m, the conv gradients n, and the broadcast.
// Each is the longest over the devices.
struct StepParts {
  double forward = 0, backward_fc = 0, backward_conv = 0, fc_gradients = 0, conv_gradients = 0,
         broadcast = 0;
  // two_phase: a + b + max(c, m) + n; `sequential`: a + b + c + m + n; both + the broadcast if it
  // is not hidden.
  [[nodiscard]] double two_phase(bool hidden_broadcast) const;
  [[nodiscard]] double sequential() const;
};

struct Measurement {
  double step_seconds = 0;  // median distance between the ends of neighbouring steps
  double fastest = 0, slowest = 0;
  // The same by the host's own clock: on a paced machine events tell model time, this is what
  // passed.
  double wall_seconds = 0;
  std::vector<TraceEvent> events;  // of all measured steps
  std::vector<TraceEvent> median_step;
  std::vector<StageTime> stages;  // of the step with the median time
  StepParts parts;                // of that step
  double images_per_second = 0;
  // Where steps run as captured graphs, what is said above of whole steps is of such, and this is
  // one's time when it is issued task by task, as those are whose tasks have times; else 0.
  double live_step_seconds = 0;
  std::string graphs_given_up;  // why they do not, though they should
  double first_step_at = 0;     // seconds_since_start() when the first step was issued; 0 on `sim`
};

// Runs `warm_up` steps, then `steps` measured ones of the session's training plan, on one batch of
// synthetic data that stays in place (so no input is awaited). Works on every backend; on `sim` the
// times are virtual.
[[nodiscard]] Measurement measure(Session& session, int warm_up, int steps);

// One step of the session's testing plan over such a batch, with the initial weights of seed 1: the
// net's last output (its prediction) of all rows, empty if there is none.
[[nodiscard]] std::vector<float> forward_once(Session& session);

// Every task's mean time in the measured steps, by cost_key.
[[nodiscard]] CostTable costs_of(const Session& session, const Net& net, const Plan& plan,
                                 const std::vector<TraceEvent>& events);

// A session of this plan, made with these options, with copies between devices left out: step time
// minus this one's is exposed communication.
[[nodiscard]] double step_seconds_without_communication(Registry& registry,
                                                        const NetDefinition& definition,
                                                        SessionOptions options, const Plan& plan,
                                                        int warm_up, int steps);

// How long this process has run, to 0.01 s; 0 where the system does not tell.
[[nodiscard]] double seconds_since_start();

// Peak resident memory of this process, bytes.
[[nodiscard]] int64_t peak_memory_bytes();

}  // namespace tandem
