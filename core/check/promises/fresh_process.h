// What a layer computes where it is the first that a process runs: a copy of this process is made
// before any kernel has run, and each question is answered by a copy of that one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/check/promises/passes.h"

namespace tandem::checker {

class FreshProcess {
 public:
  // Copies this process now, unless it has several threads, which a copy would lack. `uses`: where
  // setups have their attributes from. A layer has `patience` seconds. The copy has no use for the
  // file `closes`. All outlive it.
  FreshProcess(const Registry& registry, const std::vector<NetUse>& uses, int patience, int closes);
  ~FreshProcess();
  FreshProcess(const FreshProcess&) = delete;
  FreshProcess& operator=(const FreshProcess&) = delete;

  // Of all passes of a layer, on the first device of the kind, after those of `before`, where there
  // is one. Nothing if the layer refuses a setup there, or a setup has more than values, shapes and
  // parameters. Nor if it ends that process or takes too long: that type is not asked about again.
  [[nodiscard]] std::optional<Results> results_of(const LayerSetup& setup, const std::string& kind,
                                                  const LayerSetup* before = nullptr);
  // Why the type is not asked about; "" if it is.
  [[nodiscard]] std::string why_silent(const std::string& type) const;

 private:
  [[noreturn]] void serve() const;
  void answer(const std::vector<char>& question) const;

  const Registry& registry_;
  const std::vector<NetUse>& uses_;
  int patience_;
  bool has_threads_ = false;
  std::string silent_type_;  // the last that gave no answer
  int questions_[2] = {-1, -1}, answers_[2] = {-1, -1};
  pid_t copy_ = -1;
};

}  // namespace tandem::checker
