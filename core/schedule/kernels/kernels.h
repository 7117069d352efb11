// The kernels of a plan's bindings, prepared on the streams that will run them. Preparing fills in
// the bytes of the plan's saved and scratch buffers.
#pragma once

#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/model/net/net.h"
#include "core/schedule/kernels/kernel_choices.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

class Registry;
class Runtime;

// A valid request that a kernel cannot serve.
class Unsupported : public Error {
 public:
  using Error::Error;
};

struct KernelOwner {
  std::string layer;  // "layer 'swish1' (acme.Swish)"
  std::string place;  // " (net.prototxt:12), module /path/acme_swish.so"; no built-in module
  std::string whole;  // both
  bool is_third_party = false;
};

class Kernels {
 public:
  // Error, prefixed with the layer's title and location, if a kernel is missing or refuses;
  // Unsupported if its status is TANDEM_UNSUPPORTED. `net` and `registry` outlive the kernels.
  // `tuning`: the algorithms that they must take again, to which those that they measure are added;
  // nullptr: they choose without measuring.
  Kernels(Plan& plan, const Net& net, const Registry& registry, Runtime& runtime,
          Tuning* tuning = nullptr);
  ~Kernels();
  Kernels(Kernels&&) noexcept;

  [[nodiscard]] const tandem_kernel& table(int binding) const;
  [[nodiscard]] void* handle(int binding) const;
  // Whose kernel it is, for messages. Lives as long as the kernels.
  [[nodiscard]] const KernelOwner& owner(int binding) const;
  [[nodiscard]] const std::string& algorithm(int binding) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
