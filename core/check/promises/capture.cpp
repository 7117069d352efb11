#include "core/check/promises/passes.h"

namespace tandem::checker {

namespace {

// All passes, with those of the device captured or not; the layer is prepared outside of a capture,
// as in a run.
Results results_on(const Subject& subject, const LayerSetup& setup, BackendDevice& device,
                   bool is_captured) {
  const Subject there{subject.registry,
                      subject.devices,
                      device,
                      subject.type,
                      subject.registry.kernel(subject.type.name, device.kind()),
                      {}};
  Trial run(there, setup);
  device.capture_runs(is_captured);
  try {
    Results results = run.all_passes();
    device.capture_runs(false);
    return results;
  } catch (...) {
    device.capture_runs(false);
    throw;
  }
}

Outcome captured_on(const Subject& subject, const Case& one, BackendDevice& device) {
  Results usual;
  try {
    usual = results_on(subject, one.setup, device, false);
  } catch (const Error&) {
    return not_applicable();  // the kernel refuses the case; --device checks it there
  }
  Results captured;
  try {
    captured = results_on(subject, one.setup, device, true);
  } catch (const Error& refusal) {
    const std::string kind = device.kind();
    subject.devices.close(kind);  // the device may have failed with the capture
    return note(fmt::format("refused on {}: steps with this layer are issued task by task ({})",
                            kind, refusal.what()));
  }
  return kept_unless(differ(captured, usual, rounding),
                     " if the pass is captured on " + device.kind());
}

}  // namespace

Outcome equal_in_a_capture(const Subject& subject, const Case& one) {
  Outcome result = not_applicable();
  for (const std::string& kind : kinds_with_kernel(subject.registry, subject.type.name)) {
    Outcome there;
    try {
      if (subject.registry.backend(kind).capture == nullptr) continue;
      there = captured_on(subject, one, subject.devices.of(kind));
    } catch (const Error& failure) {
      there = note(fmt::format("not checked: there is no device ({})", failure.what()));
    }
    if (there.verdict == Outcome::Verdict::broken) return there;
    if (result.verdict != Outcome::Verdict::note) result = std::move(there);
  }
  return result;
}

}  // namespace tandem::checker
