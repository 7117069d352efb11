#include "core/formats/onnx/graph.h"

#include <limits>
#include <set>

#include <onnx_format.pb.h>
#include "core/base/error.h"
#include "core/base/overloaded.h"

namespace tandem {
namespace {

// TensorProto.DataType and AttributeProto.AttributeType.
constexpr int onnx_float = 1, onnx_int64 = 7;
constexpr int float_attribute = 1, int_attribute = 2, string_attribute = 3, ints_attribute = 7;

void fill(const OnnxAttribute& from, onnx_format::Attribute& to) {
  to.set_name(from.name);
  std::visit(overloaded{[&](int64_t value) {
                          to.set_type(int_attribute);
                          to.set_i(value);
                        },
                        [&](float value) {
                          to.set_type(float_attribute);
                          to.set_f(value);
                        },
                        [&](const std::string& value) {
                          to.set_type(string_attribute);
                          to.set_s(value);
                        },
                        [&](const std::vector<int64_t>& values) {
                          to.set_type(ints_attribute);
                          for (const int64_t value : values) to.add_ints(value);
                        }},
             from.value);
}

void describe_rows(const std::string& name, const std::vector<int64_t>& row,
                   onnx_format::ValueInfo& info) {
  info.set_name(name);
  onnx_format::TensorType& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_float);
  type.mutable_shape()->add_dim()->set_dim_param("batch");
  for (size_t i = 0; i < row.size(); ++i) {
    onnx_format::Dimension& dimension = *type.mutable_shape()->add_dim();
    if (row[i] >= 0) {
      dimension.set_dim_value(row[i]);
    } else {
      dimension.set_dim_param(i == 1 ? "height" : "width");
    }
  }
}

}  // namespace

struct OnnxGraph::State {
  onnx_format::Model model;
  std::set<std::string> names;

  onnx_format::Graph& graph() { return *model.mutable_graph(); }
  template <class T>
  onnx_format::Tensor& add_tensor(const std::string& name, const std::vector<int64_t>& extents,
                                  int type, const std::vector<T>& values) {
    onnx_format::Tensor& tensor = *graph().add_initializer();
    tensor.set_name(name);
    for (const int64_t extent : extents) tensor.add_dims(extent);
    tensor.set_data_type(type);
    tensor.set_raw_data(values.data(), values.size() * sizeof(T));
    return tensor;
  }
};

OnnxGraph::OnnxGraph(const std::string& name, int64_t opset) : state_(std::make_unique<State>()) {
  onnx_format::Model& model = state_->model;
  // The first version of the format that has these operators.
  const int64_t ir_version = opset < 15 ? 7 : opset < 19 ? 8 : opset < 21 ? 9 : 10;
  model.set_ir_version(ir_version);
  model.set_producer_name("tandem");
  model.add_opset_import()->set_version(opset);
  model.mutable_opset_import(0)->set_domain("");
  state_->graph().set_name(name.empty() ? "net" : name);
}
OnnxGraph::~OnnxGraph() = default;

int64_t OnnxGraph::opset() const {
  return state_->model.opset_import(0).version();
}

std::string OnnxGraph::free_name(const std::string& wished) {
  std::string name = wished;
  for (int i = 2; !state_->names.insert(name).second; ++i) name = fmt::format("{}_{}", wished, i);
  return name;
}

std::string OnnxGraph::add(const std::string& operation, const std::string& name,
                           const std::vector<std::string>& inputs,
                           const std::vector<OnnxAttribute>& attributes) {
  onnx_format::Node& node = *state_->graph().add_node();
  const std::string output = free_name(name);
  node.set_name(output);
  node.set_op_type(operation);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  for (const OnnxAttribute& attribute : attributes) fill(attribute, *node.add_attribute());
  return output;
}

std::string OnnxGraph::constant(const std::string& name, const std::vector<int64_t>& extents,
                                const std::vector<float>& values) {
  return state_->add_tensor(free_name(name), extents, onnx_float, values).name();
}

std::string OnnxGraph::scalar(const std::string& name, double value) {
  return constant(name, {}, {static_cast<float>(value)});
}

std::string OnnxGraph::integers(const std::string& name, const std::vector<int64_t>& values) {
  return state_
      ->add_tensor(free_name(name), {static_cast<int64_t>(values.size())}, onnx_int64, values)
      .name();
}

std::string OnnxGraph::set_input(const std::string& name, const std::vector<int64_t>& row) {
  std::string input = free_name(name);
  describe_rows(input, row, *state_->graph().add_input());
  return input;
}

void OnnxGraph::set_output(const std::string& name, const std::string& value,
                           const std::vector<int64_t>& row) {
  const std::string output = add("Identity", name, {value});
  describe_rows(output, row, *state_->graph().add_output());
}

std::string OnnxGraph::bytes() const {
  constexpr size_t max_size = std::numeric_limits<int32_t>::max();
  const size_t size = state_->model.ByteSizeLong();
  if (size > max_size) {
    throw error("the ONNX file would have {} bytes, but holds at most {}", size, max_size);
  }
  return state_->model.SerializeAsString();
}

std::string OnnxGraph::metadata_bytes(const std::map<std::string, std::string>& metadata) {
  // Fields of a message that is written in two parts are merged.
  onnx_format::Model model;
  for (const auto& [key, value] : metadata) {
    onnx_format::Entry& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  return model.SerializeAsString();
}

}  // namespace tandem
