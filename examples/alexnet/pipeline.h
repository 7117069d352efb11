// The eight-stage pipeline, measured: some steps with the chosen strategy, the same work with
// `sequential`, and once more without communication, one session at a time.
#pragma once

#include <string>
#include <vector>

#include "core/model/definition.h"
#include "core/plugin/registry.h"
#include "core/train/measure.h"
#include "examples/alexnet/options.h"

namespace alexnet {

// A session on synthetic input with what the command line says; its strategy is still to be chosen.
[[nodiscard]] tandem::SessionOptions session_options(const Options& options,
                                                     const tandem::Shape& data);
// A step of AlexNet takes seconds on a small machine: says what is going on.
void announce(const std::string& what, const Options& options, int steps);

// Where the times of compute come from: "real", "simulated", "paced by costs.csv".
[[nodiscard]] std::string compute_text(const Options& options);

// What of the broadcast nothing hides, the median over the measured steps: how long the conv
// gradients wait behind it for the communication stream, and how long after the update the last
// device begins its next forward.
[[nodiscard]] double exposed_broadcast(const tandem::Plan& plan,
                                       const std::vector<tandem::TraceEvent>& events);

struct PipelineReport {
  tandem::Measurement chosen;
  double exposed_broadcast = 0;      // seconds of a step that wait for it, beyond the stages
  double sequential_seconds = 0;     // the same work with `sequential`
  double without_communication = 0;  // seconds; 0: one device, so there is none
  std::string split;                 // first layer of the FC part; "": none
  std::vector<std::string> notes;    // what the strategy decided
  std::string memory_forecast;
  int devices = 1;
};

// `net` fits its classes; `data` is one sample's shape. Writes the timeline and, if asked for, the
// costs. Throws tandem::Error for whatever does not fit.
[[nodiscard]] PipelineReport measure_pipeline(tandem::Registry& registry,
                                              const tandem::NetDefinition& net,
                                              const tandem::Shape& data, const Options& options);

void print(const PipelineReport& report, const Options& options);

}  // namespace alexnet
