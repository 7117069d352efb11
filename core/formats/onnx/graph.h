// An ONNX model that is being written: nodes in order, constants, one input and one output, and
// metadata. Every name in it is used once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tandem {

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

class OnnxGraph {
 public:
  // Versions of the default domain's operators.
  static constexpr int64_t least_opset = 13, most_opset = 21;
  static constexpr int64_t antialias_opset = 18;  // the first whose Resize averages

  OnnxGraph(const std::string& name, int64_t opset);
  ~OnnxGraph();
  OnnxGraph(const OnnxGraph&) = delete;
  OnnxGraph& operator=(const OnnxGraph&) = delete;

  // The wished name, or one with a number after it where that is taken.
  [[nodiscard]] std::string free_name(const std::string& wished);
  // Adds a node with one output, whose name it returns: `name`, which is the node's too, or a free
  // one like it.
  std::string add(const std::string& operation, const std::string& name,
                  const std::vector<std::string>& inputs,
                  const std::vector<OnnxAttribute>& attributes = {});
  // Constants: float32 values, or 64-bit integers. Return the name.
  std::string constant(const std::string& name, const std::vector<int64_t>& extents,
                       const std::vector<float>& values);
  std::string scalar(const std::string& name, double value);
  std::string integers(const std::string& name, const std::vector<int64_t>& values);
  [[nodiscard]] int64_t opset() const;
  // The input, float32: any number of rows, each of these extents, of which the second and third
  // may be -1: any height, any width. Returns its name.
  std::string set_input(const std::string& name, const std::vector<int64_t>& row);
  // The result of `value`, under `name`.
  void set_output(const std::string& name, const std::string& value,
                  const std::vector<int64_t>& row);

  // The file's bytes without metadata. Error for more than 2 GiB, which protobuf does not hold.
  [[nodiscard]] std::string bytes() const;
  // What may follow them in the file.
  [[nodiscard]] static std::string metadata_bytes(
      const std::map<std::string, std::string>& metadata);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
