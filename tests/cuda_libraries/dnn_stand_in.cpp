// The stand-in for cuDNN's graph interface. Like cuDNN it refuses descriptors that are not
// finalized, and changes of those that are.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <thread>
#include <vector>

#include "tests/cuda_libraries/stand_in.h"

namespace tandem::cuda::stand_in {
namespace {

struct Object {
  cudnnBackendDescriptorType_t kind;
  bool is_final = false;
  std::map<cudnnBackendAttributeName_t, std::vector<char>> attributes{};  // as bytes
  Engine engine{};                           // of an engine, a configuration and a plan
  cudnnBackendDescriptorType_t operation{};  // of a graph, and of what is made from it: the first
  bool is_fused{};                           // it has several operations

  template <class Value>
  [[nodiscard]] Value get(cudnnBackendAttributeName_t name, size_t index = 0) const {
    Value value;
    std::memcpy(&value, attributes.at(name).data() + index * sizeof value, sizeof value);
    return value;
  }
  template <class Value, size_t count>
  [[nodiscard]] std::array<Value, count> get_array(cudnnBackendAttributeName_t name) const {
    std::array<Value, count> values;
    for (size_t i = 0; i < count; ++i) values[i] = get<Value>(name, i);
    return values;
  }
  [[nodiscard]] const Object& object(cudnnBackendAttributeName_t name, size_t index = 0) const {
    return *static_cast<const Object*>(get<cudnnBackendDescriptor_t>(name, index));
  }
  template <class Value>
  [[nodiscard]] size_t count(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? 0 : found->second.size() / sizeof(Value);
  }
};

size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:
      return 4;
  }
}

std::vector<Engine> known_engines() {
  std::vector<Engine> all = libraries().by_model;
  all.insert(all.end(), libraries().fallbacks.begin(), libraries().fallbacks.end());
  return all;
}
template <class Predicate>
cudnnStatus_t take(Object& object, const Predicate& is_it) {
  for (const Engine& engine : known_engines()) {
    if (!is_it(engine)) continue;
    object.engine = engine;
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

// Keeps the description for the test.
void keep_tensor(const Object& tensor) {
  libraries().tensors.push_back({tensor.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
                                 tensor.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
                                 tensor.get_array<int64_t, 4>(CUDNN_ATTR_TENSOR_DIMENSIONS),
                                 tensor.get_array<int64_t, 4>(CUDNN_ATTR_TENSOR_STRIDES)});
}
void keep_window(const Object& window) {
  libraries().windows.push_back(
      {window.get_array<int64_t, 2>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
       window.get_array<int64_t, 2>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
       window.get_array<int64_t, 2>(CUDNN_ATTR_CONVOLUTION_DILATIONS),
       window.get<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE)});
}

// The first operation, and the modes of those on elements.
void keep_graph(Object& graph) {
  graph.operation = graph.object(CUDNN_ATTR_OPERATIONGRAPH_OPS).kind;
  libraries().elementwise.clear();
  const size_t count = graph.count<cudnnBackendDescriptor_t>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  for (size_t i = 1; i < count; ++i) {
    const Object& mode = graph.object(CUDNN_ATTR_OPERATIONGRAPH_OPS, i)
                             .object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    libraries().elementwise.push_back(mode.get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE));
  }
  graph.is_fused = count > 1;
}

cudnnStatus_t finalize_configuration(Object& config) {
  const Object& engine = config.object(CUDNN_ATTR_ENGINECFG_ENGINE);
  config.operation = engine.operation;
  std::map<int64_t, int64_t> knobs;
  const size_t count = config.count<cudnnBackendDescriptor_t>(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
  for (size_t i = 0; i < count; ++i) {
    const Object& choice = config.object(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, i);
    const auto type = choice.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
    knobs[type] = choice.get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
  }
  return take(config, [&](const Engine& known) {
    return known.number == engine.engine.number && known.knobs == knobs;
  });
}

cudnnStatus_t finalize(Object& object) {
  switch (object.kind) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      keep_tensor(object);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      keep_window(object);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      keep_graph(object);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
      const Object& graph = object.object(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      object.operation = graph.operation;
      const bool is_known =
          graph.is_fused ? libraries().model_knows_fused_graphs : libraries().model_knows_graphs;
      return is_known ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    }
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR: {
      const Object& graph = object.object(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
      object.operation = graph.operation;
      if (graph.is_fused && !libraries().model_knows_fused_graphs) {
        return CUDNN_STATUS_NOT_SUPPORTED;
      }
      const auto number = object.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
      return take(object, [&](const Engine& known) { return known.number == number; });
    }
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return finalize_configuration(object);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const Object& config = object.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      object.engine = config.engine;
      object.operation = config.operation;
      libraries().prepared.push_back(object.engine.number);
      std::this_thread::sleep_for(object.engine.preparing);
      return object.engine.can_be_prepared ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    }
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

// An answer of any number of values, of which those that there is room for are copied.
struct Answer {
  int64_t room;
  int64_t* count;
  void* values;

  template <class Value>
  void operator()(const std::vector<Value>& all) const {
    *count = static_cast<int64_t>(all.size());
    std::copy_n(all.begin(), std::min(room, *count), static_cast<Value*>(values));
  }
  // fill(object, i) for the descriptors that there is room for.
  template <class Fill>
  void fill(size_t all, const Fill& fill) const {
    *count = static_cast<int64_t>(all);
    for (int64_t i = 0; i < std::min(room, *count); ++i) {
      Object& object = *static_cast<Object*>(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
      fill(object, static_cast<size_t>(i));
      object.is_final = true;
    }
  }
};

void propose(const Object& model, const Answer& answer) {
  const auto mode = model.get<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE);
  const std::vector<Engine>& engines =
      mode == CUDNN_HEUR_MODE_FALLBACK ? libraries().fallbacks : libraries().by_model;
  answer.fill(engines.size(), [&](Object& config, size_t i) {
    config.engine = engines[i];
    config.operation = model.operation;
  });
}
// Like cuDNN, it says the number of knobs only if there is room for them.
void answer_knobs(const Object& config, const Answer& answer) {
  if (answer.room == 0) return answer(std::vector<int64_t>{});
  answer.fill(config.engine.knobs.size(), [&](Object& choice, size_t i) {
    const auto knob = std::next(config.engine.knobs.begin(), static_cast<ptrdiff_t>(i));
    choice.engine.knobs = {{knob->first, knob->second}};
  });
}

cudnnStatus_t read(const Object& object, cudnnBackendAttributeName_t name, const Answer& answer) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      propose(object, answer);
      break;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      answer.fill(1, [&](Object& engine, size_t) { engine.engine = object.engine; });
      break;
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      answer_knobs(object, answer);
      break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      answer(std::vector{static_cast<cudnnBackendKnobType_t>(object.engine.knobs.begin()->first)});
      break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      answer(std::vector{object.engine.knobs.begin()->second});
      break;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      answer(std::vector{object.engine.number});
      break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      answer(object.engine.notes);
      break;
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      answer(
          std::vector(object.engine.is_compiled ? 1 : 0, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION));
      break;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      answer(std::vector{object.engine.scratch_bytes});
      break;
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace tandem::cuda::stand_in

using namespace tandem::cuda::stand_in;

extern "C" {

const char* cudnnGetErrorString(cudnnStatus_t) {
  return "an error";
}
void cudnnGetLastErrorString(char* text, size_t) {
  text[0] = '\0';
}
size_t cudnnGetVersion() {
  return 9;
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
                                           cudnnBackendDescriptor_t* descriptor) {
  ++libraries().objects;
  *descriptor = new Object{kind};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  --libraries().objects;
  delete static_cast<Object*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  Object& object = *static_cast<Object*>(descriptor);
  if (object.is_final) return CUDNN_STATUS_NOT_INITIALIZED;
  const char* const bytes = static_cast<const char*>(values);
  object.attributes[name].assign(bytes, bytes + static_cast<size_t>(count) * size_of(type));
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    if (!object.object(name, i).is_final) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Object& object = *static_cast<Object*>(descriptor);
  const cudnnStatus_t status = finalize(object);
  object.is_final = status == CUDNN_STATUS_SUCCESS;
  return status;
}
cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t room, int64_t* count,
                                       void* values) {
  const Object& object = *static_cast<const Object*>(descriptor);
  if (!object.is_final) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  return read(object, name, {room, count, values});
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const Object &what = *static_cast<Object*>(plan), &with = *static_cast<Object*>(pack);
  if (!what.engine.runs) return CUDNN_STATUS_EXECUTION_FAILED;
  const auto has_run = [&](const Libraries::Run& run) { return run.engine == what.engine.number; };
  const bool is_first = std::none_of(libraries().runs.begin(), libraries().runs.end(), has_run);
  Libraries::Run run{
      what.engine.number,
      what.operation,
      {},
      with.get<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE),
      what.engine.milliseconds + (is_first ? libraries().milliseconds_of_loading : 0.0F)};
  const size_t count = with.count<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  for (size_t i = 0; i < count; ++i) {
    const auto name = with.get<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i);
    run.operands[static_cast<size_t>(name - 1)] =
        with.get<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
  }
  libraries().runs.push_back(run);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
