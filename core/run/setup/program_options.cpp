#include "core/run/setup/program_options.h"

#include "core/base/error.h"
#include "core/formats/onnx_reader/reader.h"
#include "core/model/adapted/classes.h"
#include "core/model/adapted/models.h"
#include "core/model/file/net_phases.h"
#include "core/schedule/cost/topology_file.h"

namespace tandem {

NetDefinition NetChoice::definition() const {
  const NetDefinition read =
      in_states(text.empty() ? read_net_file(net) : read_net_text(text), state, state);
  if (classes < 0) throw error("--classes {}: there must be at least 2", classes);
  return classes > 0 ? with_class_count(read, classes) : read;
}

Shape NetChoice::data(const NetDefinition& definition) const {
  Shape shape = definition.input_shape();
  shape.n = 1;
  if (shape.c == 0) shape.c = 3;
  if (size > 0) shape.h = shape.w = size;
  if (shape.h == 0 || shape.w == 0) {
    throw error("net '{}' does not define the size of its images: give it with --image-size", net);
  }
  return shape;
}

int64_t NetChoice::batch_of(const NetDefinition& definition) const {
  constexpr int64_t default_batch = 64;
  if (batch < 0) throw error("--batch {}: the batch must have at least 1 image", batch);
  return batch > 0 ? batch : definition.batch_size(TANDEM_TRAIN).value_or(default_batch);
}

MachineOptions machine_options(const DeviceOptions& options) {
  MachineOptions machine;
  if (options.threads < 0) {
    throw error("--threads {}: there must be at least 1 (or 0 for all cores)", options.threads);
  }
  machine.threads = options.threads;
  if (!options.link.empty()) machine.link = parse_link(options.link);
  if (!options.topology.empty()) {
    if (!options.link.empty()) {
      throw error("--link {} and --topology {}: both define the speed of links; give one of them",
                  options.link, options.topology);
    }
    machine.topology = std::make_shared<Topology>(read_topology(options.topology));
  }
  machine.delay_seed = options.delay_seed;
  machine.delay_seconds = options.delay_seed != 0 ? options.delay_seconds : 0;
  return machine;
}

}  // namespace tandem
