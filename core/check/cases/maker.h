// Makes one case: values of its inputs and weights, and a first use, by which the type or its
// kernel refuses what it does not take.
#pragma once

#include <memory>
#include <vector>

#include "core/check/cases/known_types.h"
#include "core/check/cases/subject.h"

namespace tandem::checker {

// Its arguments outlive it.
class Maker {
 public:
  Maker(const Registry& registry, KernelDevice& device, const tandem_layer_type& type,
        const CaseOptions& options)
      : registry_(registry), device_(device), type_(type), options_(options) {}

  // Throws Error with the reason if the type or its kernel refuses the case.
  [[nodiscard]] Case make(const Parameters& parameters, const std::vector<Shape>& shapes,
                          uint32_t outputs, const std::vector<Values>& values = {},
                          std::shared_ptr<const Attributes> attributes = nullptr) const;

 private:
  void add_weights(LayerSetup& setup, const std::vector<Shape>& inputs) const;

  const Registry& registry_;
  KernelDevice& device_;
  const tandem_layer_type& type_;
  const CaseOptions& options_;
};

}  // namespace tandem::checker
