// What a check looks at: one layer type with its kernel on one device, and the cases in which it is
// run. A case can be written as arguments of `tandem plugin check`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/check/layer/layer_run.h"
#include "core/model/file/definition.h"
#include "core/model/net/net.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

struct Case {
  LayerSetup setup;
  std::string arguments;    // "--set kernel_size=3 --input 2x8x3x3"
  std::vector<bool> plain;  // by input: its values are numbers, not labels, indices or a shape

  // Those of input 0.
  [[nodiscard]] int64_t rows() const { return setup.inputs.empty() ? 0 : setup.inputs[0].shape.n; }
};

// A layer of a net, as a case: its parameters, and the shapes of its inputs there.
struct NetUse {
  std::string layer, type;
  std::shared_ptr<const Attributes> attributes;
  std::vector<Shape> inputs;
  uint32_t outputs = 0;
};

// The layers of a net with a few rows of the batch. Throws Error as build_net() does.
[[nodiscard]] std::vector<NetUse> uses_in_net(const Registry& registry, const std::string& file);
[[nodiscard]] std::vector<NetUse> uses_in_net(const Registry& registry,
                                              const NetDefinition& definition, NetOptions options);

// Of the layers of a net: cropped to a few pixels where they are large, and as they are.
enum class CaseSizes { all, small, large };

// The author's own cases; empty: they are generated.
struct CaseOptions {
  std::vector<NetUse> uses;  // those of the type are its cases
  CaseSizes sizes = CaseSizes::all;
  // Called with the arguments of each case before the type is asked about it: that may crash.
  std::function<void(const std::string& arguments)> trying = {};

  std::vector<std::pair<std::string, std::string>> parameters;
  std::vector<Shape> inputs;
  uint32_t outputs = 0;  // 0: as few as the type allows
};

class FreshProcess;

struct Subject {
  const Registry& registry;
  OpenDevices& devices;  // for what is checked on another device
  KernelDevice& device;
  const tandem_layer_type& type;
  const tandem_kernel& kernel;
  std::vector<Case> cases;
  FreshProcess* fresh = nullptr;  // there may be none

  [[nodiscard]] bool has(uint64_t trait) const { return (type.traits & trait) != 0; }
  // Whether an input's gradient exists and is wanted.
  [[nodiscard]] bool wants_data(const LayerSetup& setup) const {
    return kernel.backward_data != nullptr && has_data_gradient(type) &&
           (setup.flags & TANDEM_WANTS_BACKWARD_DATA) != 0;
  }
};

// The cases of a type: those of the options, or generated ones of several shapes and parameters.
// Throws Error if the type accepts none, with its reason.
[[nodiscard]] std::vector<Case> cases_of(const Registry& registry, KernelDevice& device,
                                         const std::string& type, const CaseOptions& options);

}  // namespace tandem::checker
