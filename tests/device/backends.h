// What the tests of core/device share: the two backends through the registry, and works made
// from lambdas.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "core/device/machine.h"
#include "core/plugin/registry.h"
#include "tests/support/folders.h"
#include "tests/support/message_of.h"

namespace tandem::test {

// "cpu" and "sim", from the build's plugin folder.
inline const Registry& backends() {
  static const Registry registry = [] {
    Registry loaded;
    loaded.load(test::plugin_folder() / "tandem_backend_cpu.so");
    loaded.load(test::plugin_folder() / "tandem_backend_sim.so");
    return loaded;
  }();
  return registry;
}
inline const tandem_backend& backend(const std::string& kind) {
  return backends().backend(kind);
}

inline Machine open_machine(const std::string& devices, const MachineOptions& options = {}) {
  const DeviceSpec spec = parse_devices(devices, backends());
  return Machine(backend(spec.kind), spec, options);
}

// Owns what works run; lives as long as their streams.
class Works {
 public:
  using Body = std::function<tandem_status(const tandem_call&)>;

  tandem_work work(const char* label, Body body, double predicted = -1) {
    return make(TANDEM_WORK_COMPUTE, label, std::move(body), predicted);
  }
  tandem_work host(const char* label, Body body) {
    return make(TANDEM_WORK_HOST, label, std::move(body), -1);
  }
  tandem_work message(const char* label, Body body) {
    return make(TANDEM_WORK_MESSAGE, label, std::move(body), -1);
  }
  // A body that cannot fail.
  tandem_work action(const char* label, std::function<void()> body, double predicted = -1) {
    return work(
        label, [body = std::move(body)](const tandem_call&) { return body(), TANDEM_OK; },
        predicted);
  }
  // Only its time matters.
  tandem_work timed(const char* label, double seconds) {
    return action(
        label, [] {}, seconds);
  }

 private:
  tandem_work make(int32_t kind, const char* label, Body body, double predicted) {
    bodies_.push_back(std::move(body));
    tandem_work work{};
    work.struct_size = sizeof work;
    work.kind = kind;
    work.label = label;
    work.predicted_seconds = predicted;
    work.context = &bodies_.back();
    work.run = [](void* context, const tandem_call* call) {
      return (*static_cast<Body*>(context))(*call);
    };
    return work;
  }

  std::deque<Body> bodies_;  // addresses stay
};

}  // namespace tandem::test
