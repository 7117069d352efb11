// Makes the C tables of the ABI from the classes of an author. Only sdk.h includes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "dataset.h"
#include "layer_type.h"
#include "pass.h"

namespace tandem::sdk {

namespace detail {

template <class Table, class Declared>
std::vector<const Table*> addresses(const std::vector<Declared>& declared) {
  std::vector<const Table*> result;
  for (const Declared& one : declared) result.push_back(&one);
  return result;
}

// Writes element `i` of an array of the host, whose elements may be smaller or larger than ours.
template <class T>
void write(const T& value, T* array, size_t i, uint32_t size) {
  std::memcpy(static_cast<void*>(&element(array, i, size)), &value,
              std::min<size_t>(size, sizeof value));
}

// Whether a class has a member function of its own instead of its base class's.
template <class Own, class Inherited>
constexpr bool overrides = !std::is_same_v<Own, Inherited>;

template <class T>
struct LayerTable {
  static tandem_status shapes(const tandem_layer_query* query, tandem_shape* outputs) {
    return guarded([&] {
      const std::vector<Shape> result = T{}.shapes(Query(*query));
      if (result.size() != query->output_count) {
        throw invalid("makes ", result.size(), " outputs, but ", query->output_count, " are named");
      }
      std::copy(result.begin(), result.end(), outputs);
    });
  }
  static tandem_status weights(const tandem_layer_query* query, tandem_weight* weights,
                               uint32_t weight_size, uint32_t capacity, uint32_t* size) {
    return guarded([&] {
      const std::vector<Weight> result = T{}.weights(Query(*query));
      *size = static_cast<uint32_t>(result.size());
      for (size_t i = 0; i < result.size() && i < capacity; ++i) {
        const Weight& w = result[i];
        const tandem_weight raw{w.name, w.shape, w.filler, w.initial, w.fan_in, w.fan_out, w.kind};
        write(raw, weights, i, weight_size);
      }
    });
  }
  static tandem_status cost(const tandem_layer_query* query, tandem_layer_cost* cost) {
    return guarded([&] { give(T{}.cost(Query(*query)), cost); });
  }
  static tandem_status statistics(const tandem_layer_query* query,
                                  tandem_layer_statistics* statistics) {
    return guarded([&] {
      const Statistics result = T{}.statistics(Query(*query));
      give({sizeof(tandem_layer_statistics), result.forward, result.backward}, statistics);
    });
  }
  static tandem_status activation(const tandem_layer_query* query, int32_t* activation) {
    return guarded([&] { *activation = T{}.activation(Query(*query)); });
  }
  static int32_t minimum(const Inputs& inputs) {
    return static_cast<int32_t>(std::count_if(
        inputs.begin(), inputs.end(), [](const Input& input) { return !input.is_optional; }));
  }
  static int32_t maximum(const Inputs& inputs) {
    const bool is_open = !inputs.empty() && inputs.back().is_repeated;
    return is_open ? -1 : static_cast<int32_t>(inputs.size());
  }
  static const tandem_layer_type* table() {
    static const T type{};
    static const std::vector<Parameter> parameters = type.parameters();
    static const auto parameter_pointers = addresses<tandem_parameter>(parameters);
    static const Inputs inputs = type.inputs();
    static const auto input_pointers = addresses<tandem_input>(inputs);
    static const tandem_layer_type table{
        sizeof(tandem_layer_type),
        type.name(),
        type.help(),
        parameter_pointers.data(),
        static_cast<uint32_t>(parameter_pointers.size()),
        input_pointers.data(),
        static_cast<uint32_t>(input_pointers.size()),
        minimum(inputs),
        maximum(inputs),
        type.outputs().minimum,
        type.outputs().maximum,
        type.traits(),
        &shapes,
        overrides<decltype(&T::weights), decltype(&LayerType::weights)> ? &weights : nullptr,
        overrides<decltype(&T::cost), decltype(&LayerType::cost)> ? &cost : nullptr,
        &statistics,
        &activation};
    return &table;
  }
};

// What the handle of a prepared kernel points to.
template <class K>
struct Prepared {
  Prepared(const Binding& binding, const Call& call) : kernel(binding, call), sizes(binding) {}
  K kernel;
  TensorSizes sizes;
};

template <class K>
struct KernelTable {
  static Prepared<K>& self(void* handle) { return *static_cast<Prepared<K>*>(handle); }
  static constexpr uint32_t dtypes() {
    if constexpr (requires { K::dtypes; }) {
      return K::dtypes;
    } else {
      return 0;
    }
  }
  static constexpr uint32_t activations() {
    if constexpr (requires { K::fused_activations; }) {
      return K::fused_activations;
    } else {
      return 0;
    }
  }
  static constexpr uint32_t gradients() {
    if constexpr (requires { K::fused_gradients; }) {
      static_assert((K::fused_gradients & ~activations()) == 0,
                    "fused_gradients must be some of fused_activations");
      return K::fused_gradients;
    } else {
      return 0;
    }
  }
  static constexpr uint32_t gradients_before() {
    if constexpr (requires { K::gradients_before; }) {
      return K::gradients_before;
    } else {
      return 0;
    }
  }
  static constexpr uint32_t fuses_sum() {
    if constexpr (requires { K::fuses_sum; }) {
      return K::fuses_sum ? 1 : 0;
    } else {
      return 0;
    }
  }
  static tandem_status layouts(const tandem_binding* binding, tandem_layout_option* options,
                               uint32_t option_size, uint32_t capacity, uint32_t* size) {
    return guarded([&] {
      static_assert(
          !requires { &K::layouts; } || requires { K::layouts(Binding(*binding)); },
          "layouts must be: static LayoutOptions layouts(const Binding&)");
      if constexpr (requires { K::layouts(Binding(*binding)); }) {
        const LayoutOptions result = K::layouts(Binding(*binding));
        *size = static_cast<uint32_t>(std::min<size_t>(result.size(), capacity));
        for (size_t i = 0; i < *size; ++i) write(result[i], options, i, option_size);
      } else {
        *size = capacity > 0 ? 1 : 0;
        if (capacity > 0) write({TANDEM_NCHW, TANDEM_NCHW, 0}, options, 0, option_size);
      }
    });
  }
  static tandem_status prepare(const tandem_binding* binding, const tandem_call* call,
                               void** handle, tandem_kernel_report* report) {
    return guarded([&] {
      require_known_flags(binding->flags);
      auto prepared = std::make_unique<Prepared<K>>(Binding(*binding), *call);
      if constexpr (std::is_base_of_v<Needs, K>) {
        const Needs& needs = prepared->kernel;
        give({sizeof(tandem_kernel_report), needs.saved_bytes, needs.scratch_bytes,
              needs.statistics, needs.algorithm.c_str(), needs.is_measured ? 1 : 0},
             report);
      }
      *handle = prepared.release();
    });
  }
  static void release(void* handle) { delete &self(handle); }

// A pass with another signature is a compile error. If it were ignored, the net would train wrongly
// without a message.
// NOLINTBEGIN(bugprone-macro-parentheses): `name` names a function, also of a template
#define TANDEM_SDK_PASS(name)                                                                     \
  template <class AnyPass>                                                                        \
  static tandem_status name(void* handle, const tandem_call* call, const tandem_pass* pass) {     \
    return guarded([&] { self(handle).kernel.name(*call, AnyPass(*pass, self(handle).sizes)); }); \
  }                                                                                               \
  static tandem_pass_function name##_or_null() {                                                  \
    constexpr bool on_host = requires(K & kernel, const Call& call, const Pass& pass) {           \
      kernel.name(call, pass);                                                                    \
    };                                                                                            \
    constexpr bool on_device = requires(K & kernel, const Call& call, const DevicePass& pass) {   \
      kernel.name(call, pass);                                                                    \
    };                                                                                            \
    static_assert(                                                                                \
        on_host || on_device || !requires { &K::name; },                                          \
        #name " must be: void " #name "(const Call&, const Pass&), or with const DevicePass&");   \
    if constexpr (on_host) {                                                                      \
      return &name<Pass>;                                                                         \
    } else if constexpr (on_device) {                                                             \
      return &name<DevicePass>;                                                                   \
    } else {                                                                                      \
      return nullptr;                                                                             \
    }                                                                                             \
  }
  // NOLINTEND(bugprone-macro-parentheses)
  TANDEM_SDK_PASS(forward)
  TANDEM_SDK_PASS(backward_data)
  TANDEM_SDK_PASS(backward_weights)
  TANDEM_SDK_PASS(backward)
  TANDEM_SDK_PASS(forward_statistics)
  TANDEM_SDK_PASS(backward_statistics)
#undef TANDEM_SDK_PASS

  static tandem_status merge(void* handle, const tandem_call* call, float* target,
                             const float* const* sources, uint32_t source_count) {
    return guarded([&] {
      self(handle).kernel.merge_forward_statistics(*call, target, sources, source_count);
    });
  }
  static tandem_merge_function merge_or_null() {
    constexpr bool callable = requires(K & kernel, const Call& call, float* target,
                                       const float* const* sources, uint32_t source_count) {
      kernel.merge_forward_statistics(call, target, sources, source_count);
    };
    static_assert(
        callable || !requires { &K::merge_forward_statistics; },
        "merge_forward_statistics must be: void merge_forward_statistics(const Call&, "
        "float* target, const float* const* sources, uint32_t source_count)");
    if constexpr (callable) {
      return &merge;
    } else {
      return nullptr;
    }
  }
};

template <class D>
struct DatasetTable {
  static tandem_status open(const tandem_dataset_request* request, void** handle,
                            tandem_dataset_info* info) {
    return guarded([&] {
      auto dataset = std::make_unique<D>(*request, Attributes(request->attributes));
      tandem_dataset_info own = covered(*info);
      own.size = dataset->size();
      own.class_count = dataset->class_count();
      own.shape = dataset->shape();
      own.split_is_drawn = dataset->split_is_drawn() ? 1 : 0;
      own.task = dataset->task();
      dataset->describe_bytes(own);
      give(own, info);
      *handle = dataset.release();
    });
  }
  template <class Function>
  static const char* or_empty(Function&& function) {
    const char* result = "";
    return guarded([&] { result = function(); }) == TANDEM_OK ? result : "";
  }
  static D& self(void* handle) { return *static_cast<D*>(handle); }
  static void close(void* handle) { delete &self(handle); }
  static const char* class_name(void* handle, int64_t index) {
    return or_empty([&] { return self(handle).class_name(index); });
  }
  static const char* sample_name(void* handle, int64_t index) {
    return or_empty([&] { return self(handle).sample_name(index); });
  }
  static const char* notes(void* handle) {
    return or_empty([&] { return self(handle).notes(); });
  }
  static tandem_status get(void* handle, int64_t index, uint64_t seed, float* pixels,
                           float* label) {
    return guarded([&] { self(handle).get(index, seed, pixels, label); });
  }
  static tandem_status get_inputs(void* handle, int64_t index, uint64_t seed,
                                  float* const* inputs) {
    return guarded([&] { self(handle).get_inputs(index, seed, inputs); });
  }
  static tandem_status get_bytes(void* handle, int64_t index, uint64_t seed, uint8_t* pixels,
                                 float* label) {
    return guarded([&] { self(handle).get_bytes(index, seed, pixels, label); });
  }
  static tandem_status targets(void* handle, int64_t index, float* values) {
    return guarded([&] { self(handle).targets(index, values); });
  }
  static int64_t label(void* handle, int64_t index) {
    int64_t label = -1;
    return guarded([&] { label = self(handle).label(index); }) == TANDEM_OK ? label : -1;
  }
  static tandem_status describe(void* handle, int64_t index, tandem_sample_info* info) {
    return guarded([&] {
      tandem_sample_info own = covered(*info);
      self(handle).describe(index, own);
      give(own, info);
    });
  }
  template <class T = D>
  static auto recognizes_or_null() -> decltype(tandem_dataset_type::recognizes) {
    if constexpr (requires { T::recognizes(std::string()); }) {
      return [](const char* source) -> int32_t {
        bool known = false;
        return guarded([&] { known = T::recognizes(source); }) == TANDEM_OK && known ? 1 : 0;
      };
    } else {
      return nullptr;
    }
  }
  template <class T = D>
  static auto pack_or_null() -> decltype(tandem_dataset_type::pack) {
    if constexpr (requires(const tandem_pack_request& request) { T::pack(request); }) {
      return [](const tandem_pack_request* request) -> tandem_status {
        return guarded([&] { T::pack(*request); });
      };
    } else {
      return nullptr;
    }
  }

  static const tandem_dataset_type* table() {
    static const std::vector<Parameter> parameters = D::parameters();
    static const auto pointers = addresses<tandem_parameter>(parameters);
    using Base = DatasetType;
    static const tandem_dataset_type table{
        sizeof(tandem_dataset_type),
        D::name(),
        D::help(),
        pointers.data(),
        static_cast<uint32_t>(pointers.size()),
        &open,
        &close,
        &class_name,
        &sample_name,
        &notes,
        &get,
        overrides<decltype(&D::get_inputs), decltype(&Base::get_inputs)> ? &get_inputs : nullptr,
        recognizes_or_null(),
        overrides<decltype(&D::label), decltype(&Base::label)> ? &label : nullptr,
        overrides<decltype(&D::describe), decltype(&Base::describe)> ? &describe : nullptr,
        pack_or_null(),
        overrides<decltype(&D::get_bytes), decltype(&Base::get_bytes)> ? &get_bytes : nullptr,
        overrides<decltype(&D::targets), decltype(&Base::targets)> ? &targets : nullptr};
    return &table;
  }
};

}  // namespace detail

}  // namespace tandem::sdk
