// A layer's kernel on this thread's OpenMP team, with memory for all of its passes, for
// bench_layers. All values are 0, on which no kernel is faster.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/layer_cases.h"
#include "core/plugin/attributes.h"
#include "core/plugin/registry.h"
#include "core/schedule/plan/plan.h"

namespace tandem::bench {

struct TimedPass {
  LayerPass pass = LayerPass::forward;
  bool adds = false;  // to what is there, as gradients of weights that layers share
};
[[nodiscard]] std::string to_string(const TimedPass& timed);  // "forward", "added_weights"

// A case with the shapes, weights and costs that its layer type gives. The registry outlives it.
class CaseType {
 public:
  // Throws Error where the type refuses the case.
  CaseType(const Registry& registry, LayerCase layer, int32_t dtype);
  CaseType(const CaseType&) = delete;
  CaseType& operator=(const CaseType&) = delete;

  [[nodiscard]] const LayerCase& layer() const { return case_; }
  [[nodiscard]] bool knows_dtype() const;
  [[nodiscard]] std::vector<tandem_layout_option> options();
  [[nodiscard]] std::vector<TimedPass> passes() const;
  // Multiplications and additions of a pass, and the bytes that it must move: tensors in the case's
  // dtype, weights in float32.
  [[nodiscard]] double flops(LayerPass pass) const;
  [[nodiscard]] double bytes(LayerPass pass) const;

 private:
  friend class LayerRun;
  tandem_binding bind(const tandem_layout_option& option);
  [[nodiscard]] bool is_first() const { return case_.input.c == 3; }  // images have no gradient
  [[nodiscard]] int64_t weight_bytes() const;

  LayerCase case_;
  int32_t dtype_;
  const tandem_layer_type& type_;
  const tandem_kernel& kernel_;
  Attributes attributes_;
  Shape output_{};
  std::vector<Shape> weight_shapes_;
  tandem_layer_cost cost_{};
  tandem_layer_statistics statistics_{sizeof statistics_, 0, 0};
  std::vector<Shape> input_shapes_;
  std::vector<tandem_tensor> input_tensors_;
  tandem_tensor output_tensor_{};
};

// The case prepared in one layout. Only one exists at a time: AlexNet's take a gigabyte each.
class LayerRun {
 public:
  LayerRun(CaseType& type, const tandem_layout_option& option, int32_t threads);
  LayerRun(const LayerRun&) = delete;
  LayerRun& operator=(const LayerRun&) = delete;

  // With the statistics that the pass needs.
  void run(const TimedPass& timed);
  // "jit:avx512_core; saved 0 MiB, scratch 12 MiB"
  [[nodiscard]] std::string description() const;

 private:
  using Memory = std::unique_ptr<void, void (*)(void*)>;
  void* allocate(int64_t bytes);  // zeroed, 64-byte aligned

  CaseType& type_;
  tandem_call call_{};
  tandem_kernel_report report_{};
  std::vector<Memory> memory_;
  std::unique_ptr<void, void (*)(void*)> handle_;  // the kernel's, which goes before its memory
  std::vector<void*> inputs_, input_gradients_, weights_, weight_gradients_;
  void *output_ = nullptr, *forward_statistics_ = nullptr, *backward_statistics_ = nullptr;
  const void* output_gradient_ = nullptr;
  tandem_step step_{1, 1, 0.01F, 1, 0, 0};
  float normaliser_ = 1;
  tandem_pass pass_{};
};

}  // namespace tandem::bench
