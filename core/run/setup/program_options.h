// The net and the devices of a program as its user gives them, read.
#pragma once

#include <string>

#include "core/device/machine.h"
#include "core/model/file/definition.h"
#include "include/tandem/devices.h"

namespace tandem {

// The net of a program that trains on nothing: a model, a file or a text, with input size, classes
// and batch.
struct NetChoice {
  std::string net = "alexnet";               // a model's name or a prototxt file
  std::string text;                          // instead of `net`: prototxt
  int64_t batch = 0, classes = 0, size = 0;  // 0: the net's
  NetState state;

  // Throws Error for a net that cannot be read, or with other classes cannot be.
  [[nodiscard]] NetDefinition definition() const;
  // The shape of one sample. Throws Error if neither the net nor `size` has it.
  [[nodiscard]] Shape data(const NetDefinition& net) const;
  [[nodiscard]] int64_t batch_of(const NetDefinition& net) const;
};

// Throws Error for a value that is wrong, and for both a link and a topology.
[[nodiscard]] MachineOptions machine_options(const DeviceOptions& options);

}  // namespace tandem
