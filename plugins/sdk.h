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
//
// Pointers of a Pass lie in memory that the host reads and writes. A kernel of a device with memory
// of its own takes a DevicePass instead, whose pointers cannot be read by accident.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "sdk.h needs C++20: use tandem_add_plugin, set CMAKE_CXX_STANDARD 20, or pass -std=c++20"
#endif

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
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

// Writes the fields of a struct of the host that its struct_size covers, and leaves its
// struct_size. The host may be of an older minor version, whose struct ends earlier.
template <class T>
void give(const T& value, T* target) {
  const size_t size = std::min<size_t>(target->struct_size, sizeof value);
  constexpr size_t after = sizeof(T::struct_size);
  static_assert(offsetof(T, struct_size) == 0);
  if (size > after) {
    std::memcpy(reinterpret_cast<std::byte*>(target) + after,
                reinterpret_cast<const std::byte*>(&value) + after, size - after);
  }
}

// A copy of the fields that the struct_size of a struct of the host covers; the rest is zero.
template <class T>
T covered(const T& given) {
  T result{};
  std::memcpy(&result, &given, std::min<size_t>(given.struct_size, sizeof result));
  return result;
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

// The last text that this thread explained; "" if there is none.
inline std::string explained() {
  return host->explained();
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

// A declared input: Input("scores"), Input("label").label(). Strings must be literals.
class Input : public tandem_input {
 public:
  explicit Input(const char* input_name) : tandem_input{} {
    struct_size = sizeof(tandem_input);
    role = TANDEM_INPUT_DATA;
    name = input_name;
  }
  Input& label() { return role = TANDEM_INPUT_LABEL, *this; }
  Input& targets() { return role = TANDEM_INPUT_TARGETS, *this; }
  Input& shape_only() { return role = TANDEM_INPUT_SHAPE, *this; }
  Input& non_differentiable() { return role = TANDEM_INPUT_NON_DIFFERENTIABLE, *this; }
  Input& optional() { return is_optional = true, *this; }  // all after it must be, too
  Input& repeated() { return is_repeated = true, *this; }  // once or more often; the last one only

  bool is_optional = false, is_repeated = false;
};
using Inputs = std::vector<Input>;

// The number of outputs.
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
  virtual Inputs inputs() const { return {Input("data")}; }
  virtual Arity outputs() const { return {}; }
  virtual uint64_t traits() const { return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS; }
  virtual std::vector<Shape> shapes(const Query& query) const {
    return std::vector<Shape>(query.output_count(), query.input(0));
  }
  virtual std::vector<Weight> weights(const Query&) const { return {}; }
  // Of a type that does not define it, the host assumes one operation, one read and one write for
  // each element of the inputs.
  virtual tandem_layer_cost cost(const Query&) const { return make_cost(0, 0, 0, 0, 0, 0); }
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

// Element `i` of an array whose elements, of a caller with another minor version, may be larger
// than ours.
template <class T>
T& element(T* array, size_t i, uint32_t size) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return *reinterpret_cast<T*>(reinterpret_cast<Byte*>(array) + i * size);
}

struct Binding {
  explicit Binding(const tandem_binding& binding) : raw(binding), attributes(binding.attributes) {}
  const tandem_tensor& input(size_t i) const { return element(raw.inputs, i, raw.tensor_size); }
  const tandem_tensor& output(size_t i) const { return element(raw.outputs, i, raw.tensor_size); }
  const Shape& weight(size_t i) const { return raw.weights[i]; }
  size_t input_count() const { return raw.input_count; }
  size_t output_count() const { return raw.output_count; }
  size_t weight_count() const { return raw.weight_count; }
  bool training() const { return raw.phase == TANDEM_TRAIN; }
  bool has(uint32_t flag) const { return (raw.flags & flag) != 0; }
  // The element of a whole row at which a sliced input 0 begins.
  int64_t input_begin() const { return raw.input_begin; }
  // The algorithm of an earlier run, which must be used again. nullptr: the kernel chooses.
  const char* algorithm() const { return raw.algorithm; }
  // The activation that forward applies to each element of output 0.
  int32_t activation() const { return raw.fused_activation; }
  bool fuses_relu() const { return activation() == TANDEM_ACTIVATION_RELU; }

  const tandem_binding& raw;
  Attributes attributes;
};

// The `fused_activations` of a kernel that can fuse a ReLU.
constexpr uint32_t relu_only = 1U << TANDEM_ACTIVATION_RELU;

// The values of a tensor in memory that the host reads and writes, n rows of equal size in the
// layout of the binding. Null where a gradient is not wanted. It converts to a pointer and, as a
// range, to a std::span.
template <class T>
class TensorView {
 public:
  TensorView(T* data, int64_t rows, int64_t size) : data_(data), rows_(rows), size_(size) {}
  operator T*() const { return data_; }
  T* data() const { return data_; }
  size_t size() const { return data_ == nullptr ? 0 : static_cast<size_t>(size_); }
  T* begin() const { return data_; }
  T* end() const { return data_ + size(); }
  int64_t rows() const { return rows_; }
  std::span<T> row(int64_t i) const {
    const int64_t length = rows_ == 0 ? 0 : size_ / rows_;
    return {data_ + i * length, static_cast<size_t>(length)};
  }

 private:
  T* data_;
  int64_t rows_, size_;
};

// An address in the memory of a device, for a kernel that runs there. Null where a gradient is not
// wanted.
template <class T>
class DevicePointer {
 public:
  explicit DevicePointer(T* address) : address_(address) {}
  T* get() const { return address_; }
  explicit operator bool() const { return address_ != nullptr; }

 private:
  T* address_;
};

// What a pass knows of its tensors, from the binding.
struct TensorSizes {
  struct One {
    int64_t rows = 0, size = 0;
    int32_t dtype = TANDEM_FLOAT32;
  };
  explicit TensorSizes(const Binding& binding) {
    for (size_t i = 0; i < binding.input_count(); ++i) inputs.push_back(of(binding.input(i)));
    for (size_t i = 0; i < binding.output_count(); ++i) outputs.push_back(of(binding.output(i)));
    for (size_t i = 0; i < binding.weight_count(); ++i) {
      weights.push_back({binding.weight(i).n, count(binding.weight(i)), TANDEM_FLOAT32});
    }
  }
  static One of(const tandem_tensor& tensor) {
    return {tensor.shape.n, count(tensor.shape), tensor.dtype};
  }
  std::vector<One> inputs, outputs, weights;
};

inline size_t bytes_of(int32_t dtype) {
  if (dtype == TANDEM_UINT8) return 1;
  return dtype == TANDEM_BFLOAT16 || dtype == TANDEM_FLOAT16 ? 2 : 4;
}

// Refuses flags of a newer host that change what a kernel has to compute.
inline void require_known_flags(uint32_t flags) {
  if ((flags & TANDEM_REQUIRED_FLAGS) == 0) return;
  throw unsupported("the kernel was built for version ", TANDEM_LAYERS_MAJOR, ".",
                    TANDEM_LAYERS_MINOR, " of the layer tables and does not know the flags ",
                    flags & TANDEM_REQUIRED_FLAGS, " of this Tandem: rebuild its plugin");
}

// What Pass and DevicePass share: the tandem_pass, and a check that elements are read as what they
// are.
class PassBase {
 public:
  PassBase(const tandem_pass& pass, const TensorSizes& tensor_sizes)
      : raw(pass), sizes(tensor_sizes) {
    require_known_flags(raw.flags);
  }
  bool accumulate() const { return (raw.flags & TANDEM_ACCUMULATE) != 0; }

  const tandem_pass& raw;
  const TensorSizes& sizes;

 protected:
  template <class T>
  static void require_elements(const TensorSizes::One& tensor, const char* what, size_t i) {
    if (sizeof(T) == bytes_of(tensor.dtype)) return;
    throw failed("the kernel reads ", what, " ", i, " as elements of ", sizeof(T),
                 " bytes, but it has elements of ", bytes_of(tensor.dtype));
  }
};

// The memory of one pass, which the host reads and writes: of kernels on a cpu.
struct Pass : PassBase {
  using PassBase::PassBase;

  template <class T = float>
  TensorView<const T> input(size_t i) const {
    return view<const T>(raw.inputs[i], sizes.inputs[i], "input", i);
  }
  template <class T = float>
  TensorView<T> output(size_t i) const {
    return view<T>(raw.outputs[i], sizes.outputs[i], "output", i);
  }
  TensorView<const float> weight(size_t i) const {
    return view<const float>(raw.weights[i], sizes.weights[i], "weight", i);
  }
  // A TANDEM_STATE weight.
  TensorView<float> state(size_t i) const {
    return view<float>(raw.weights[i], sizes.weights[i], "weight", i);
  }
  template <class T = float>
  TensorView<T> input_gradient(size_t i) const {
    return view<T>(raw.input_gradients[i], sizes.inputs[i], "input gradient", i);
  }
  template <class T = float>
  TensorView<const T> output_gradient(size_t i) const {
    return view<const T>(raw.output_gradients[i], sizes.outputs[i], "output gradient", i);
  }
  TensorView<float> weight_gradient(size_t i) const {
    return view<float>(raw.weight_gradients[i], sizes.weights[i], "weight gradient", i);
  }
  template <class T = float>
  T* saved() const {
    return static_cast<T*>(raw.saved);
  }
  template <class T = float>
  T* scratch() const {
    return static_cast<T*>(raw.scratch);
  }
  template <class T = float>
  T* statistics() const {
    return reinterpret_cast<T*>(raw.statistics);
  }
  const tandem_step& step() const { return *raw.step; }
  float normaliser() const { return *raw.normaliser; }
  // False: the row holds no sample, and a loss or metric must ignore it.
  bool holds_sample(int64_t row) const {
    return raw.row_labels == nullptr || !(raw.row_labels[row] < 0);
  }

 private:
  template <class T, class Address>
  static TensorView<T> view(Address* address, const TensorSizes::One& tensor, const char* what,
                            size_t i) {
    require_elements<T>(tensor, what, i);
    return {static_cast<T*>(address), tensor.rows, tensor.size};
  }
};

// The memory of one pass on a device with memory of its own: addresses to hand to what runs there.
struct DevicePass : PassBase {
  using PassBase::PassBase;

  template <class T = float>
  DevicePointer<const T> input(size_t i) const {
    return pointer<const T>(raw.inputs[i], sizes.inputs[i], "input", i);
  }
  template <class T = float>
  DevicePointer<T> output(size_t i) const {
    return pointer<T>(raw.outputs[i], sizes.outputs[i], "output", i);
  }
  DevicePointer<const float> weight(size_t i) const {
    return DevicePointer(static_cast<const float*>(raw.weights[i]));
  }
  // A TANDEM_STATE weight.
  DevicePointer<float> state(size_t i) const {
    return DevicePointer(static_cast<float*>(raw.weights[i]));
  }
  template <class T = float>
  DevicePointer<T> input_gradient(size_t i) const {
    return pointer<T>(raw.input_gradients[i], sizes.inputs[i], "input gradient", i);
  }
  template <class T = float>
  DevicePointer<const T> output_gradient(size_t i) const {
    return pointer<const T>(raw.output_gradients[i], sizes.outputs[i], "output gradient", i);
  }
  DevicePointer<float> weight_gradient(size_t i) const {
    return DevicePointer(static_cast<float*>(raw.weight_gradients[i]));
  }
  template <class T = float>
  DevicePointer<T> saved() const {
    return DevicePointer(static_cast<T*>(raw.saved));
  }
  template <class T = float>
  DevicePointer<T> scratch() const {
    return DevicePointer(static_cast<T*>(raw.scratch));
  }
  template <class T = float>
  DevicePointer<T> statistics() const {
    return DevicePointer(reinterpret_cast<T*>(raw.statistics));
  }
  DevicePointer<const tandem_step> step() const { return DevicePointer(raw.step); }
  DevicePointer<const float> normaliser() const { return DevicePointer(raw.normaliser); }
  // One for each row, below zero where it holds no sample; null: all rows hold samples.
  DevicePointer<const float> row_labels() const { return DevicePointer(raw.row_labels); }

 private:
  template <class T, class Address>
  static DevicePointer<T> pointer(Address* address, const TensorSizes::One& tensor,
                                  const char* what, size_t i) {
    require_elements<T>(tensor, what, i);
    return DevicePointer<T>(static_cast<T*>(address));
  }
};

// A base class for kernels that need more memory than their tensors.
struct Needs {
  int64_t saved_bytes = 0;
  int64_t scratch_bytes = 0;
  int64_t statistics = 0;
  std::string algorithm;
  bool is_measured = false;  // see tandem_kernel_report
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

// ---- Data sets ----------------------------------------------------------------------------------

// An opened data set. A type derives from it, and has a constructor (const tandem_dataset_request&,
// const Attributes&), static const char* name() and static const char* help(). It may have
// - static std::vector<Parameter> parameters();
// - static bool recognizes(const std::string& source), if it reads files or folders;
// - static void pack(const tandem_pack_request&).
// All functions are called by several threads at a time.
class DatasetType {
 public:
  virtual ~DatasetType() = default;
  static std::vector<Parameter> parameters() { return {}; }

  virtual int64_t size() const = 0;
  virtual int64_t class_count() const = 0;
  virtual Shape shape() const = 0;  // of one sample: n = 1
  virtual const char* class_name(int64_t index) const = 0;
  virtual const char* sample_name(int64_t index) const = 0;  // for messages
  // Lines for the user: what was skipped and why.
  virtual const char* notes() const { return ""; }
  // Writes c*h*w floats and the class: a function of index and seed alone. skip() says that the
  // sample is damaged.
  virtual void get(int64_t index, uint64_t seed, float* pixels, float* label) const = 0;

  // Whether the request's seed decides which samples it holds.
  virtual bool split_is_drawn() const { return false; }

  // Offered to the host only by a type that defines them.
  // The further inputs of the request, if a sample is more than an image and a label.
  virtual void get_inputs(int64_t, uint64_t, float* const*) const {}
  // The label that get() gives, without reading pixels.
  virtual int64_t label(int64_t) const { return -1; }
  virtual void describe(int64_t, tandem_sample_info&) const {}
  // Like get(), but pixels are rounded to bytes. describe_bytes sets has_bytes and the fields after
  // it.
  virtual void get_bytes(int64_t, uint64_t, uint8_t*, float*) const {}
  virtual void describe_bytes(tandem_dataset_info&) const {}
};

// Thrown by a data set's get(): this sample is damaged and is to be skipped.
template <class... Values>
Refusal skip(const Values&... values) {
  return {TANDEM_SKIP, text(values...)};
}

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
        overrides<decltype(&D::get_bytes), decltype(&Base::get_bytes)> ? &get_bytes : nullptr};
    return &table;
  }
};

}  // namespace detail

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
    tables_->types.push_back(detail::LayerTable<T>::table());
    return *this;
  }
  // K needs a constructor (const Binding&, const Call&) and forward(const Call&, const Pass&), or
  // with a const DevicePass& where the host cannot read the device's memory. It may have, with the
  // signature of forward: backward_data, backward_weights, backward, forward_statistics,
  // backward_statistics. It may also have:
  // - merge_forward_statistics(const Call&, float* target, const float* const* sources, uint32_t
  //   source_count), if its statistics cannot be added;
  // - static LayoutOptions layouts(const Binding&), if it supports more than NCHW;
  // - static constexpr uint32_t dtypes, bits 1 << TANDEM_FLOAT32 and so on, if it supports more
  //   than float32;
  // - static constexpr uint32_t fused_activations, bits 1 << TANDEM_ACTIVATION_RELU and so on, if
  //   it can fuse them.
  template <class T, class K>
  Plugin& kernel(const char* device_kind) {
    using Table = detail::KernelTable<K>;
    static_assert(
        requires { &K::forward; },
        "a kernel needs a public void forward(const Call&, const Pass&)");
    tables_->kernels.push_back(&tables_->owned_kernels.emplace_back(tandem_kernel{
        sizeof(tandem_kernel), T{}.name(), device_kind, &Table::layouts, &Table::prepare,
        &Table::release, Table::forward_or_null(), Table::backward_data_or_null(),
        Table::backward_weights_or_null(), Table::backward_or_null(),
        Table::forward_statistics_or_null(), Table::backward_statistics_or_null(),
        Table::merge_or_null(), Table::dtypes(), Table::activations()}));
    return *this;
  }
  Plugin& backend(const tandem_backend* table) { return tables_->backends.push_back(table), *this; }
  Plugin& transport(const tandem_transport* table) {
    return tables_->transports.push_back(table), *this;
  }
  // D derives from DatasetType.
  template <class D>
  Plugin& dataset() {
    static_assert(std::is_base_of_v<DatasetType, D>, "a data set derives from sdk::DatasetType");
    tables_->datasets.push_back(detail::DatasetTable<D>::table());
    return *this;
  }
  const tandem_plugin* table() {
    Tables& t = *tables_;
    if (!t.types.empty() || !t.kernels.empty()) {
      t.layer_part = {sizeof(tandem_layers), TANDEM_LAYERS_MAJOR, TANDEM_LAYERS_MINOR,
                      size(t.types),         size(t.kernels),     t.types.data(),
                      t.kernels.data()};
      t.table.layers = &t.layer_part;
    }
    if (!t.datasets.empty()) {
      t.dataset_part = {sizeof(tandem_datasets), TANDEM_DATASETS_MAJOR, TANDEM_DATASETS_MINOR,
                        size(t.datasets), t.datasets.data()};
      t.table.datasets = &t.dataset_part;
    }
    if (!t.backends.empty()) {
      t.backend_part = {sizeof(tandem_backends), TANDEM_BACKENDS_MAJOR, TANDEM_BACKENDS_MINOR,
                        size(t.backends), t.backends.data()};
      t.table.backends = &t.backend_part;
    }
    if (!t.transports.empty()) {
      t.transport_part = {sizeof(tandem_transports), TANDEM_TRANSPORTS_MAJOR,
                          TANDEM_TRANSPORTS_MINOR, size(t.transports), t.transports.data()};
      t.table.transports = &t.transport_part;
    }
    return &t.table;
  }

 private:
  template <class T>
  static uint32_t size(const std::vector<const T*>& tables) {
    return static_cast<uint32_t>(tables.size());
  }

  struct Tables {
    tandem_plugin table{};
    tandem_layers layer_part{};
    tandem_datasets dataset_part{};
    tandem_backends backend_part{};
    tandem_transports transport_part{};
    std::vector<const tandem_layer_type*> types;
    std::vector<const tandem_kernel*> kernels;
    std::vector<const tandem_dataset_type*> datasets;
    std::vector<const tandem_backend*> backends;
    std::vector<const tandem_transport*> transports;
    std::deque<tandem_kernel> owned_kernels;
    Tables* older = nullptr;
  };
  // The host uses the tables as long as the process lives, and two registries call the entry twice.
  // So nothing is freed, and everything stays reachable from here.
  inline static std::atomic<Tables*> newest_{nullptr};
  Tables* tables_;
};

}  // namespace tandem::sdk
