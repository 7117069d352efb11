// The header-only C++ wrapper over abi.h for authors of plugins. An author writes small classes and
// never sees the C tables. This header holds the only try/catch of a plugin: an exception that a
// class throws becomes a status and a reason, so that no C++ exception or type crosses the ABI.
//
//   struct Swish : tandem::sdk::LayerType { ... };   what the layer is
//   struct SwishCpu {                                how it runs on a kind of device
//     SwishCpu(const Binding&, const Call&);
//     void forward(const Call&, const Pass&);
//     void backward_data(const Call&, const Pass&);
//   };
//   extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
//     tandem::sdk::Plugin plugin(host, "acme-swish", "1.0");
//     return plugin.layer<Swish>().kernel<Swish, SwishCpu>("cpu").table();
//   }
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi.h"
#include "random.h"

#define TANDEM_EXPORT __attribute__((visibility("default")))

namespace tandem::sdk {

using Shape = tandem_shape;

inline int64_t count(const Shape& s) {
  return s.n * s.c * s.h * s.w;
}
inline bool equal(const Shape& a, const Shape& b) {
  return a.n == b.n && a.c == b.c && a.h == b.h && a.w == b.w;
}

// text("kernel ", 11, " exceeds ...")
template <class... Values>
std::string text(const Values&... values) {
  std::ostringstream stream;
  (stream << ... << values);
  return stream.str();
}
inline std::string text_of(const Shape& s) {
  return text(s.n, "x", s.c, "x", s.h, "x", s.w);
}

// The exception that an author throws: a status, and a reason for the user.
class Refusal : public std::exception {
 public:
  Refusal(tandem_status status, std::string reason) : status_(status), reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }
  tandem_status status() const { return status_; }

 private:
  tandem_status status_;
  std::string reason_;
};
template <class... Values>
Refusal invalid(const Values&... values) {
  return {TANDEM_INVALID, text(values...)};
}
template <class... Values>
Refusal unsupported(const Values&... values) {
  return {TANDEM_UNSUPPORTED, text(values...)};
}
template <class... Values>
Refusal failed(const Values&... values) {
  return {TANDEM_FAILED, text(values...)};
}

// The host's table, set by Plugin's constructor. One per module, since modules hide their symbols.
inline const tandem_host* host = nullptr;

// The last text that this thread explained; "" if there is none or if the host is too old.
inline std::string explained() {
  const bool offered = host->struct_size >= offsetof(tandem_host, explained) + sizeof(void*);
  return offered && host->explained != nullptr ? host->explained() : "";
}

// Runs the function. An exception becomes a status, whose reason is explained to the host.
template <class Function>
tandem_status guarded(Function&& function) noexcept {
  try {
    function();
    return TANDEM_OK;
  } catch (const Refusal& refusal) {
    host->explain(refusal.what());
    return refusal.status();
  } catch (const std::bad_alloc&) {
    host->explain("out of memory");
    return TANDEM_OUT_OF_MEMORY;
  } catch (const std::exception& failure) {
    host->explain(failure.what());
    return TANDEM_FAILED;
  } catch (...) {
    host->explain("unknown exception");
    return TANDEM_FAILED;
  }
}

// ---- Parameters ---------------------------------------------------------------------------------

// A declared parameter: integer("convolution_param", "num_output").required().range(1, 1e6)
// .help("output channels"). Strings must be literals.
class Parameter : public tandem_parameter {
 public:
  Parameter(int32_t parameter_type, const char* block_name, const char* parameter_name)
      : tandem_parameter{} {
    struct_size = sizeof(tandem_parameter);
    type = parameter_type;
    block = block_name;
    name = parameter_name;
    minimum = 1;
    maximum = 0;
    tandem_parameter::help = "";
  }
  Parameter& required() { return tandem_parameter::required = 1, *this; }
  Parameter& by_default(const char* value) { return default_value = value, *this; }
  Parameter& range(double low, double high) { return minimum = low, maximum = high, *this; }
  Parameter& one_of(const char* words) { return choices = words, *this; }
  Parameter& help(const char* line) { return tandem_parameter::help = line, *this; }
};
inline Parameter integer(const char* b, const char* n) {
  return {TANDEM_PARAMETER_INTEGER, b, n};
}
inline Parameter number(const char* b, const char* n) {
  return {TANDEM_PARAMETER_NUMBER, b, n};
}
inline Parameter boolean(const char* b, const char* n) {
  return {TANDEM_PARAMETER_BOOLEAN, b, n};
}
inline Parameter word(const char* b, const char* n) {
  return {TANDEM_PARAMETER_TEXT, b, n};
}
inline Parameter integers(const char* b, const char* n) {
  return {TANDEM_PARAMETER_INTEGERS, b, n};
}
inline Parameter numbers(const char* b, const char* n) {
  return {TANDEM_PARAMETER_NUMBERS, b, n};
}
inline Parameter filler(const char* b, const char* n) {
  return {TANDEM_PARAMETER_FILLER, b, n};
}

class Attributes {
 public:
  explicit Attributes(const tandem_attributes* attributes) : attributes_(attributes) {}
  int64_t integer(const char* name) const { return get<int64_t>(host->get_integer, name); }
  bool boolean(const char* name) const { return integer(name) != 0; }
  double number(const char* name) const { return get<double>(host->get_number, name); }
  std::string_view text(const char* name) const { return get<const char*>(host->get_text, name); }
  std::vector<int64_t> integers(const char* name) const {
    const int64_t* values = nullptr;
    uint32_t size = 0;
    require(host->get_integers(attributes_, name, &values, &size), name);
    return {values, values + size};
  }
  std::vector<double> numbers(const char* name) const {
    if (host->struct_size < offsetof(tandem_host, get_numbers) + sizeof(void*)) {
      throw failed("parameter '", name, "' is a list of numbers, which needs Tandem's ABI 1.1");
    }
    const double* values = nullptr;
    uint32_t size = 0;
    require(host->get_numbers(attributes_, name, &values, &size), name);
    return {values, values + size};
  }
  bool is_set(const char* name) const { return host->is_set(attributes_, name) != 0; }

 private:
  static void require(tandem_status status, const char* name) {
    if (status == TANDEM_OK) return;
    const std::string reason = explained();
    throw Refusal(status,
                  reason.empty() ? sdk::text("parameter '", name, "' cannot be read") : reason);
  }
  template <class Value, class Getter>
  Value get(Getter getter, const char* name) const {
    Value value{};
    require(getter(attributes_, name, &value), name);
    return value;
  }
  const tandem_attributes* attributes_;
};

// ---- Layer types --------------------------------------------------------------------------------

struct Query {
  explicit Query(const tandem_layer_query& query) : raw(query), attributes(query.attributes) {}
  const Shape& input(size_t i) const { return raw.inputs[i]; }
  size_t input_count() const { return raw.input_count; }
  size_t output_count() const { return raw.output_count; }
  bool training() const { return raw.phase == TANDEM_TRAIN; }

  const tandem_layer_query& raw;
  Attributes attributes;
};

struct Arity {
  int minimum = 1, maximum = 1;  // maximum -1: any number
};

struct Weight {
  const char* name;
  Shape shape;
  const char* filler = nullptr;  // name of the FILLER parameter, or nullptr: `initial` everywhere
  double initial = 0;
  int64_t fan_in = 1, fan_out = 1;
  int32_t kind = TANDEM_TRAINED;
};

// Floats that the statistics passes write. With TANDEM_BATCH_STATISTICS.
struct Statistics {
  int64_t forward = 0, backward = 0;  // 0: no such pass
};

// The type of a layer. Objects have no state: they are created and destroyed at any time.
class LayerType {
 public:
  virtual ~LayerType() = default;
  virtual const char* name() const = 0;
  virtual const char* help() const = 0;
  virtual std::vector<Parameter> parameters() const { return {}; }
  virtual Arity inputs() const { return {}; }
  virtual Arity outputs() const { return {}; }
  virtual uint64_t traits() const { return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS; }
  virtual std::vector<Shape> shapes(const Query& query) const {
    return std::vector<Shape>(query.output_count(), query.input(0));
  }
  virtual std::vector<Weight> weights(const Query&) const { return {}; }
  // Default: that of an element-wise layer, with one operation, one read and one write per element.
  virtual tandem_layer_cost cost(const Query& query) const {
    double elements = 0;
    for (size_t i = 0; i < query.input_count(); ++i)
      elements += static_cast<double>(count(query.input(i)));
    return make_cost(elements, elements, 0, 8 * elements, 12 * elements, 0);
  }
  // The result must not depend on the number of rows.
  virtual Statistics statistics(const Query&) const { return {}; }
  // The TANDEM_ACTIVATION_... that its forward pass computes, if it computes nothing else.
  virtual int32_t activation(const Query&) const { return TANDEM_ACTIVATION_NONE; }

 protected:
  static tandem_layer_cost make_cost(double forward_flops, double backward_data_flops,
                                     double backward_weights_flops, double forward_bytes,
                                     double backward_data_bytes, double backward_weights_bytes) {
    return {sizeof(tandem_layer_cost), forward_flops, backward_data_flops,
            backward_weights_flops,    forward_bytes, backward_data_bytes,
            backward_weights_bytes};
  }
};

// ---- Kernels ------------------------------------------------------------------------------------

using Call = tandem_call;

struct Binding {
  explicit Binding(const tandem_binding& binding) : raw(binding), attributes(binding.attributes) {}
  const tandem_tensor& input(size_t i) const { return raw.inputs[i]; }
  const tandem_tensor& output(size_t i) const { return raw.outputs[i]; }
  const Shape& weight(size_t i) const { return raw.weights[i]; }
  size_t input_count() const { return raw.input_count; }
  size_t output_count() const { return raw.output_count; }
  size_t weight_count() const { return raw.weight_count; }
  bool training() const { return raw.phase == TANDEM_TRAIN; }
  bool has(uint32_t flag) const { return (raw.flags & flag) != 0; }
  // The element of a whole row at which a sliced input 0 begins.
  int64_t input_begin() const {
    return raw.struct_size > offsetof(tandem_binding, input_begin) ? raw.input_begin : 0;
  }
  // The algorithm of an earlier run, which must be used again. nullptr: the kernel chooses.
  const char* algorithm() const {
    return raw.struct_size > offsetof(tandem_binding, algorithm) ? raw.algorithm : nullptr;
  }
  // The activation that forward applies to each element of output 0.
  int32_t activation() const {
    return raw.struct_size > offsetof(tandem_binding, activation) ? raw.activation
                                                                  : TANDEM_ACTIVATION_NONE;
  }

  const tandem_binding& raw;
  Attributes attributes;
};

struct Pass {
  explicit Pass(const tandem_pass& pass) : raw(pass) {}
  const float* input(size_t i) const { return static_cast<const float*>(raw.inputs[i]); }
  float* output(size_t i) const { return static_cast<float*>(raw.outputs[i]); }
  const float* weight(size_t i) const { return static_cast<const float*>(raw.weights[i]); }
  // A TANDEM_STATE weight.
  float* state(size_t i) const { return static_cast<float*>(raw.weights[i]); }
  float* input_gradient(size_t i) const { return static_cast<float*>(raw.input_gradients[i]); }
  const float* output_gradient(size_t i) const {
    return static_cast<const float*>(raw.output_gradients[i]);
  }
  float* weight_gradient(size_t i) const { return static_cast<float*>(raw.weight_gradients[i]); }
  bool accumulate() const { return (raw.flags & TANDEM_ACCUMULATE) != 0; }
  template <class T = float>
  T* saved() const {
    return static_cast<T*>(raw.saved);
  }
  template <class T = float>
  T* scratch() const {
    return static_cast<T*>(raw.scratch);
  }
  const tandem_step& step() const { return *raw.step; }
  float normaliser() const { return *raw.normaliser; }
  template <class T = float>
  T* statistics() const {
    return reinterpret_cast<T*>(raw.statistics);
  }
  // False: the row holds no sample, and a loss or metric must ignore it.
  bool holds_sample(int64_t row) const {
    const bool known = raw.struct_size >= offsetof(tandem_pass, row_labels) + sizeof(void*) &&
                       raw.row_labels != nullptr;
    return !known || !(raw.row_labels[row] < 0);
  }

  const tandem_pass& raw;
};

// A base class for kernels that need more memory than their tensors.
struct Needs {
  int64_t saved_bytes = 0;
  int64_t scratch_bytes = 0;
  int64_t statistics = 0;
  std::string algorithm;
};

using LayoutOptions = std::vector<tandem_layout_option>;

// For kernels that work on elements in any order: every plain and blocked layout, the same for
// input and output.
inline LayoutOptions any_layout(int64_t channels) {
  LayoutOptions options{{TANDEM_NCHW, TANDEM_NCHW, 0}, {TANDEM_NHWC, TANDEM_NHWC, 0}};
  if (channels % 8 == 0) options.push_back({TANDEM_NCHW8C, TANDEM_NCHW8C, 0});
  if (channels % 16 == 0) options.push_back({TANDEM_NCHW16C, TANDEM_NCHW16C, 0});
  return options;
}

namespace detail {

inline std::vector<const tandem_parameter*> addresses(const std::vector<Parameter>& parameters) {
  std::vector<const tandem_parameter*> result;
  for (const Parameter& parameter : parameters) result.push_back(&parameter);
  return result;
}

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
                               uint32_t capacity, uint32_t* size) {
    return guarded([&] {
      const std::vector<Weight> result = T{}.weights(Query(*query));
      *size = static_cast<uint32_t>(result.size());
      for (size_t i = 0; i < result.size() && i < capacity; ++i) {
        const Weight& w = result[i];
        weights[i] = {w.name, w.shape, w.filler, w.initial, w.fan_in, w.fan_out, w.kind};
      }
    });
  }
  static tandem_status cost(const tandem_layer_query* query, tandem_layer_cost* cost) {
    return guarded([&] { *cost = T{}.cost(Query(*query)); });
  }
  static tandem_status statistics(const tandem_layer_query* query,
                                  tandem_layer_statistics* statistics) {
    return guarded([&] {
      const Statistics result = T{}.statistics(Query(*query));
      statistics->forward = result.forward;
      statistics->backward = result.backward;
    });
  }
  static tandem_status activation(const tandem_layer_query* query, int32_t* activation) {
    return guarded([&] { *activation = T{}.activation(Query(*query)); });
  }
  static const tandem_layer_type* table() {
    static const T type{};
    static const std::vector<Parameter> parameters = type.parameters();
    static const std::vector<const tandem_parameter*> pointers = addresses(parameters);
    static const tandem_layer_type table{sizeof(tandem_layer_type),
                                         type.name(),
                                         type.help(),
                                         pointers.data(),
                                         static_cast<uint32_t>(pointers.size()),
                                         type.inputs().minimum,
                                         type.inputs().maximum,
                                         type.outputs().minimum,
                                         type.outputs().maximum,
                                         type.traits(),
                                         &shapes,
                                         &weights,
                                         &cost,
                                         &statistics,
                                         &activation};
    return &table;
  }
};

template <class K>
struct KernelTable {
  static constexpr uint32_t dtypes() {
    if constexpr (requires { K::dtypes; }) {
      return K::dtypes;
    } else {
      return 0;
    }
  }
  static constexpr uint64_t activations() {
    if constexpr (requires { K::fused_activations; }) {
      return K::fused_activations;
    } else {
      return 0;
    }
  }
  static tandem_status layouts(const tandem_binding* binding, tandem_layout_option* options,
                               uint32_t capacity, uint32_t* size) {
    return guarded([&] {
      static_assert(
          !requires { &K::layouts; } || requires { K::layouts(Binding(*binding)); },
          "layouts must be: static LayoutOptions layouts(const Binding&)");
      if constexpr (requires { K::layouts(Binding(*binding)); }) {
        const LayoutOptions result = K::layouts(Binding(*binding));
        *size = static_cast<uint32_t>(std::min<size_t>(result.size(), capacity));
        std::copy_n(result.begin(), *size, options);
      } else {
        *size = capacity > 0 ? 1 : 0;
        if (capacity > 0) options[0] = {TANDEM_NCHW, TANDEM_NCHW, 0};
      }
    });
  }
  static tandem_status prepare(const tandem_binding* binding, const tandem_call* call,
                               void** handle, tandem_kernel_report* report) {
    return guarded([&] {
      auto kernel = std::make_unique<K>(Binding(*binding), *call);
      if constexpr (std::is_base_of_v<Needs, K>) {
        report->saved_bytes = kernel->saved_bytes;
        report->scratch_bytes = kernel->scratch_bytes;
        report->statistics = kernel->statistics;
        report->algorithm = kernel->algorithm.c_str();
      }
      *handle = kernel.release();
    });
  }
  static void release(void* handle) { delete static_cast<K*>(handle); }

// A pass with another signature is a compile error. If it were ignored, the net would train wrongly
// without a message.
#define TANDEM_SDK_PASS(name)                                                                 \
  static tandem_status name(void* handle, const tandem_call* call, const tandem_pass* pass) { \
    return guarded([&] { static_cast<K*>(handle)->name(*call, Pass(*pass)); });               \
  }                                                                                           \
  static tandem_pass_function name##_or_null() {                                              \
    constexpr bool callable = requires(K & kernel, const Call& call, const Pass& pass) {      \
      kernel.name(call, pass);                                                                \
    };                                                                                        \
    static_assert(                                                                            \
        callable || !requires { &K::name; },                                                  \
        #name " must be: void " #name "(const Call&, const Pass&)");                          \
    if constexpr (callable) {                                                                 \
      return &name;                                                                           \
    } else {                                                                                  \
      return nullptr;                                                                         \
    }                                                                                         \
  }
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
      static_cast<K*>(handle)->merge_forward_statistics(*call, target, sources, source_count);
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
      info->size = dataset->size();
      info->class_count = dataset->class_count();
      info->shape = dataset->shape();
      if constexpr (requires(const D& d) { d.split_is_drawn(); }) {
        if (info->struct_size > offsetof(tandem_dataset_info, split_is_drawn)) {
          info->split_is_drawn = dataset->split_is_drawn() ? 1 : 0;
        }
      }
      if constexpr (requires(const D& d, tandem_dataset_info& i) { d.describe_bytes(i); }) {
        if (info->struct_size > offsetof(tandem_dataset_info, byte_scale)) {
          dataset->describe_bytes(*info);
        }
      }
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
  template <class T = D>
  static auto get_inputs_or_null() -> decltype(tandem_dataset_type::get_inputs) {
    if constexpr (requires(const T& d, float* const* inputs) { d.get_inputs(0, 0, inputs); }) {
      return [](void* handle, int64_t index, uint64_t seed, float* const* inputs) -> tandem_status {
        return guarded([&] { self(handle).get_inputs(index, seed, inputs); });
      };
    } else {
      return nullptr;
    }
  }
  template <class T = D>
  static auto get_bytes_or_null() -> decltype(tandem_dataset_type::get_bytes) {
    if constexpr (requires(const T& d, uint8_t* p, float* l) { d.get_bytes(0, 0, p, l); }) {
      return [](void* handle, int64_t index, uint64_t seed, uint8_t* pixels,
                float* label) -> tandem_status {
        return guarded([&] { self(handle).get_bytes(index, seed, pixels, label); });
      };
    } else {
      return nullptr;
    }
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
  static auto label_or_null() -> decltype(tandem_dataset_type::label) {
    if constexpr (requires(const T& d) { d.label(0); }) {
      return [](void* handle, int64_t index) -> int64_t {
        int64_t label = -1;
        return guarded([&] { label = self(handle).label(index); }) == TANDEM_OK ? label : -1;
      };
    } else {
      return nullptr;
    }
  }
  template <class T = D>
  static auto describe_or_null() -> decltype(tandem_dataset_type::describe) {
    if constexpr (requires(const T& d, tandem_sample_info& info) { d.describe(0, info); }) {
      return [](void* handle, int64_t index, tandem_sample_info* info) -> tandem_status {
        return guarded([&] { self(handle).describe(index, *info); });
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
};

}  // namespace detail

// Thrown by a data set's get(): this sample is damaged and is to be skipped.
template <class... Values>
Refusal skip(const Values&... values) {
  return {TANDEM_SKIP, text(values...)};
}

// For a plugin that cannot serve this machine: `return not_here(host, "no CUDA device found");`
inline const tandem_plugin* not_here(const tandem_host* host_table, const std::string& reason) {
  host_table->explain(reason.c_str());
  return nullptr;
}

// ---- The module ---------------------------------------------------------------------------------

// Collects the tables of the module. They live as long as the process, like the module.
class Plugin {
 public:
  Plugin(const tandem_host* host_table, const char* name, const char* version)
      : tables_(new Tables{}) {
    if (host != host_table) host = host_table;  // a second registry: its threads may be running
    tables_->older = newest_.exchange(tables_);
    tables_->table.abi_major = TANDEM_ABI_MAJOR;
    tables_->table.abi_minor = TANDEM_ABI_MINOR;
    tables_->table.struct_size = sizeof(tandem_plugin);
    tables_->table.name = name;
    tables_->table.version = version;
  }
  template <class T>
  Plugin& layer() {
    tables_->layers.push_back(detail::LayerTable<T>::table());
    return *this;
  }
  // K needs a constructor (const Binding&, const Call&) and forward(const Call&, const Pass&). It
  // may have, with the signature of forward: backward_data, backward_weights, backward,
  // forward_statistics, backward_statistics. It may also have:
  // - merge_forward_statistics(const Call&, float* target, const float* const* sources, uint32_t
  //   source_count), if its statistics cannot be added;
  // - static LayoutOptions layouts(const Binding&), if it supports more than NCHW;
  // - static constexpr uint32_t dtypes, bits 1 << TANDEM_FLOAT32 and so on, if it supports more
  //   than float32;
  // - static constexpr uint64_t fused_activations, bits 1 << TANDEM_ACTIVATION_RELU and so on, if
  //   it can fuse them.
  template <class T, class K>
  Plugin& kernel(const char* device_kind) {
    using Table = detail::KernelTable<K>;
    static_assert(
        requires(K & kernel, const Call& call, const Pass& pass) { kernel.forward(call, pass); },
        "a kernel needs a public void forward(const Call&, const Pass&)");
    tables_->kernels.push_back(tables_->keep(tandem_kernel{
        sizeof(tandem_kernel), T{}.name(), device_kind, &Table::layouts, &Table::prepare,
        &Table::release, Table::forward_or_null(), Table::backward_data_or_null(),
        Table::backward_weights_or_null(), Table::backward_or_null(),
        Table::forward_statistics_or_null(), Table::backward_statistics_or_null(),
        Table::merge_or_null(), Table::dtypes(), Table::activations()}));
    return *this;
  }
  Plugin& backend(const tandem_backend* table) { return tables_->backends.push_back(table), *this; }
  Plugin& transport(const struct tandem_transport* table) {
    return tables_->transports.push_back(table), *this;
  }
  // D needs a constructor (const tandem_dataset_request&, const Attributes&); static name(),
  // help(), parameters(); size, class_count, shape, class_name, sample_name, notes, get. It may
  // have:
  // - get_inputs(index, seed, float* const*) const, if a sample is more than an image and a label;
  // - static bool recognizes(const std::string& source);
  // - label(index) const, which reads no pixels;
  // - describe(index, tandem_sample_info&) const;
  // - split_is_drawn() const: true if the request's seed decides which samples it holds;
  // - static pack(const tandem_pack_request&);
  // - get_bytes(index, seed, uint8_t* pixels, float* label) const, together with
  //   describe_bytes(tandem_dataset_info&) const, which sets has_bytes and the fields after it.
  template <class D>
  Plugin& dataset() {
    using Table = detail::DatasetTable<D>;
    static const std::vector<Parameter> parameters = D::parameters();
    static const std::vector<const tandem_parameter*> pointers = detail::addresses(parameters);
    tables_->datasets.push_back(tables_->keep(tandem_dataset_type{
        sizeof(tandem_dataset_type), D::name(), D::help(), pointers.data(),
        static_cast<uint32_t>(pointers.size()), &Table::open, &Table::close, &Table::class_name,
        &Table::sample_name, &Table::notes, &Table::get, Table::get_inputs_or_null(),
        Table::recognizes_or_null(), Table::label_or_null(), Table::describe_or_null(),
        Table::pack_or_null(), Table::get_bytes_or_null()}));
    return *this;
  }
  const tandem_plugin* table() {
    tandem_plugin& t = tables_->table;
    t.layer_types = tables_->layers.data();
    t.layer_type_count = static_cast<uint32_t>(tables_->layers.size());
    t.kernels = tables_->kernels.data();
    t.kernel_count = static_cast<uint32_t>(tables_->kernels.size());
    t.backends = tables_->backends.data();
    t.backend_count = static_cast<uint32_t>(tables_->backends.size());
    t.dataset_types = tables_->datasets.data();
    t.dataset_type_count = static_cast<uint32_t>(tables_->datasets.size());
    t.transports = tables_->transports.data();
    t.transport_count = static_cast<uint32_t>(tables_->transports.size());
    return &t;
  }

 private:
  struct Tables {
    tandem_plugin table{};
    std::vector<const tandem_layer_type*> layers;
    std::vector<const tandem_kernel*> kernels;
    std::vector<const tandem_backend*> backends;
    std::vector<const tandem_dataset_type*> datasets;
    std::vector<const struct tandem_transport*> transports;
    std::deque<tandem_kernel> owned_kernels;
    std::deque<tandem_dataset_type> owned_datasets;
    Tables* older = nullptr;

    const tandem_kernel* keep(const tandem_kernel& kernel) {
      return &owned_kernels.emplace_back(kernel);
    }
    const tandem_dataset_type* keep(const tandem_dataset_type& dataset) {
      return &owned_datasets.emplace_back(dataset);
    }
  };
  // The host uses the tables as long as the process lives, and two registries call the entry twice.
  // So nothing is freed, and everything stays reachable from here.
  inline static std::atomic<Tables*> newest_{nullptr};
  Tables* tables_;
};

}  // namespace tandem::sdk
