// An ONNX file as it is: nodes in an order in which they can be computed, and constants as float32
// or 64-bit integers. Values in other files are read, too, but from the file's own folder only.
// What attributes of older opsets say is an input of the node as in the newest one, so that later
// stages know one form.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tandem {

struct OnnxTensor {
  std::vector<int64_t> shape;
  bool is_integer = false;
  std::string parameter;    // the initializer whose values these are, as they are or moved; or ""
  bool is_derived = false;  // computed from parameters, or picked from one of several values
  std::vector<float> floats;
  std::vector<int64_t> integers;

  // The module whose parameter it is: "conv1" of "conv1.weight"; "" for other names.
  [[nodiscard]] std::string owner() const;
  // Whether it is trained where it becomes a layer's array.
  [[nodiscard]] bool is_trained() const { return !parameter.empty() || is_derived; }
  // Whether that is so for a single number as well: exporters write the numbers of functions as
  // initializers, too, but not under the name of a module.
  [[nodiscard]] bool is_trained_number() const { return is_derived || !owner().empty(); }
  [[nodiscard]] size_t count() const { return is_integer ? integers.size() : floats.size(); }
  [[nodiscard]] double at(size_t i) const {
    return is_integer ? static_cast<double>(integers[i]) : static_cast<double>(floats[i]);
  }
};
using OnnxConstant = std::shared_ptr<const OnnxTensor>;

using OnnxValueOfAttribute = std::variant<int64_t, float, std::string, std::vector<int64_t>,
                                          std::vector<float>, OnnxConstant>;

// The value as a tensor; null for a text.
[[nodiscard]] OnnxConstant tensor_of(const OnnxValueOfAttribute& value);

struct OnnxNode {
  std::string name, operation, domain;
  std::vector<std::string> inputs, outputs;  // "" for one that is left out
  std::map<std::string, OnnxValueOfAttribute> attributes;

  // The values of attributes; `absent` where there is none of that type.
  [[nodiscard]] int64_t integer(const std::string& name, int64_t absent) const;
  [[nodiscard]] double number(const std::string& name, double absent) const;
  [[nodiscard]] std::string text(const std::string& name, const std::string& absent) const;
  [[nodiscard]] std::vector<int64_t> integers(const std::string& name) const;
  [[nodiscard]] bool has_input(size_t i) const { return i < inputs.size() && !inputs[i].empty(); }
  // "node 'conv1' (Conv)"
  [[nodiscard]] std::string title() const;
};

struct OnnxFile {
  struct Input {
    std::string name;
    std::vector<int64_t> shape;  // -1: any extent
    bool is_real = true, is_bytes = false;
  };
  std::filesystem::path path;
  std::string producer;
  int64_t opset = 0;
  std::vector<OnnxNode> nodes;
  std::map<std::string, OnnxConstant> constants;
  std::vector<Input> inputs;  // without those that have an initializer
  std::vector<std::string> outputs;
  std::map<std::string, std::string> metadata;
};

// The product of extents; -1 for a negative one, and for more than `most`.
[[nodiscard]] int64_t count_of(const std::vector<int64_t>& extents, int64_t most);

// Error in one line for a file that is missing or damaged, of an opset before 7, with a value of
// another size than its shape says, with data outside its folder, and with nodes that cannot be
// sorted so that each follows those whose results it reads.
[[nodiscard]] OnnxFile read_onnx_file(const std::filesystem::path& path);

// Whether the file's name ends as those of ONNX do.
[[nodiscard]] bool is_onnx_file(const std::filesystem::path& path);

}  // namespace tandem
