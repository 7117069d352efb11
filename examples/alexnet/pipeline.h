// The eight-stage pipeline, measured: some steps with the chosen strategy, the same work with
// `sequential`, and once more without communication, one after the other.
#pragma once

#include <tandem/profile.h>

#include <string>

#include "options.h"

namespace alexnet {

// What the command line says of a measurement.
[[nodiscard]] tandem::ProfileOptions profile_options(const Options& options);
// A step of AlexNet takes seconds on a small machine: prints what is being measured.
void announce(const std::string& what, const Options& options);

// Where the times of compute come from: "real", "simulated", "paced by costs.csv".
[[nodiscard]] std::string compute_text(const Options& options);

// The part of the broadcast that nothing hides, the median over the measured steps: how long the
// conv gradients wait after it for the communication stream, and how long after the update the last
// device begins its next forward.
[[nodiscard]] double exposed_broadcast(const tandem::Profile& profile);

struct PipelineReport {
  tandem::Profile chosen;
  double sequential_seconds = 0;     // the same work with `sequential`
  double without_communication = 0;  // seconds; 0: one device, so there is none
  int devices = 1;
};

// Of several ranks only the first one prints. Throws tandem::Error if they are to train, too.
void begin_as_rank(const tandem::Profiler& profiler, const Options& options);

// From here on Ctrl-C ends the measuring with what there is, and long measuring tells how far it
// is.
void watch(tandem::Profiler& profiler);
[[nodiscard]] bool was_stopped();

// `options.classes` fit the data. Writes the timeline and, if requested, the picture and the costs.
// Throws tandem::Error for whatever does not fit.
[[nodiscard]] PipelineReport measure_pipeline(const Options& options);

void print(const PipelineReport& report, const Options& options);

}  // namespace alexnet
