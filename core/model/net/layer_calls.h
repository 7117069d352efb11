// Calls of a layer's type and kernel over the C ABI. Every refusal becomes an Error that begins
// with the layer's title and ends with its location in the file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/running_note.h"
#include "core/model/net/net.h"

namespace tandem {

class Registry;

// "layer 'conv1' (Convolution): <reason> (net.prototxt:23)"
[[nodiscard]] Error layer_error(const Layer& layer, const std::string& reason);
template <class First, class... Rest>
[[nodiscard]] Error layer_error(const Layer& layer, fmt::format_string<First, Rest...> reason,
                                First&& first, Rest&&... rest) {
  return layer_error(layer,
                     fmt::format(reason, std::forward<First>(first), std::forward<Rest>(rest)...));
}

// While it lives, a plugin answers a question ("shapes") about the layer by `function`: a signal
// that ends the program is reported with them, and with the function's module.
class Asking {
 public:
  template <class Function>
  Asking(const Layer& layer, const char* question, Function* function)
      : Asking(layer, question, reinterpret_cast<const void*>(function)) {}

 private:
  Asking(const Layer& layer, const char* question, const void* function);
  std::string owner_;
  RunningNote note_;
};

// Throws an Error unless status is TANDEM_OK: with the reason that the plugin gave, or that it
// refused `asked` ("its shapes") without one.
void require_answer(const Layer& layer, tandem_status status, const char* asked);

// The type by name. The Error has near names, and the title and location of the layer.
[[nodiscard]] const tandem_layer_type& find_type(const Registry& registry, const std::string& type,
                                                 const std::string& title,
                                                 const Location& location);

// Shapes of the layer's outputs (as many as it has), each at least 1x1x1x1.
[[nodiscard]] std::vector<Shape> output_shapes(const Layer& layer, int32_t phase,
                                               const std::vector<Shape>& inputs);
// The weights it declares over those inputs.
[[nodiscard]] std::vector<tandem_weight> declared_weights(const Layer& layer, int32_t phase,
                                                          const std::vector<Shape>& inputs);
[[nodiscard]] tandem_layer_cost layer_cost(const Layer& layer, int32_t phase,
                                           const std::vector<Shape>& inputs);
// Zeros for a layer without statistics.
[[nodiscard]] tandem_layer_statistics layer_statistics(const Layer& layer, int32_t phase,
                                                       const std::vector<Shape>& inputs);
// The TANDEM_ACTIVATION_... that its forward pass computes; TANDEM_ACTIVATION_NONE if it computes
// anything else.
[[nodiscard]] int32_t layer_activation(const Layer& layer, int32_t phase,
                                       const std::vector<Shape>& inputs);

// The layer's kernel for a kind of device.
[[nodiscard]] const tandem_kernel& kernel_of(const Layer& layer, const Registry& registry,
                                             const std::string& device_kind);

// The tandem_binding of a whole layer, with the data that it points to. `shapes`: of all tensors.
struct LayerBinding {
  LayerBinding() = default;
  LayerBinding(const Net& net, const Layer& layer, const std::vector<Shape>& shapes);
  LayerBinding(LayerBinding&&) = default;
  LayerBinding& operator=(LayerBinding&&) = default;

  std::vector<tandem_tensor> inputs, outputs;
  std::vector<Shape> weights;
  tandem_binding raw{};
};

}  // namespace tandem
