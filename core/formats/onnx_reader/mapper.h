// Makes a net of an ONNX graph, node by node: the values, the layers and their weights. Functions
// of the operators (operators.h) use it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/formats/arrays.h"
#include "core/formats/onnx_reader/constants.h"
#include "core/formats/onnx_reader/file.h"
#include "core/formats/onnx_reader/value.h"
#include "core/model/file/text_format.h"

namespace tandem {

// The net as a prototxt's message, the values of its arrays by their names ("conv1.weight"), and
// lines for the user.
struct OnnxMapped {
  Message net;
  ArrayFile arrays;
  std::vector<std::string> notes;
};

class OnnxMapper {
 public:
  explicit OnnxMapper(const OnnxFile& file) : file_(file), budget_(file) {}

  // `input`: the value of the graph's input. Returns that of the graph's output. Error in one line
  // that names all nodes that cannot be mapped.
  OnnxNetValue map(OnnxNetValue input, const std::string& output);
  [[nodiscard]] OnnxMapped& result() { return result_; }

  // ---- what a node reads

  [[nodiscard]] OnnxConstant constant(const OnnxNode& node, size_t input) const;  // or null
  [[nodiscard]] bool is_constant(const OnnxNode& node, size_t input) const;
  // Error for an input that is a constant or missing; the other way round.
  [[nodiscard]] OnnxNetValue value(const OnnxNode& node, size_t input);
  // The same, of a value that is to be expanded without that it is.
  [[nodiscard]] OnnxNetValue operand(const OnnxNode& node, size_t input) const;
  [[nodiscard]] OnnxConstant required(const OnnxNode& node, size_t input) const;
  // The integers of an optional constant.
  [[nodiscard]] std::vector<int64_t> integers(const OnnxNode& node, size_t input) const;

  // ---- the order of elements

  // The value with its elements in the order of its axes, in a tensor of these extents.
  OnnxNetValue plain(OnnxNetValue value, const NetExtents& net);
  // The same in the order of these factors.
  OnnxNetValue arranged(OnnxNetValue value, const std::vector<size_t>& order,
                        const NetExtents& net);
  // The value where these factors make whole axes of the tensor, `count` of them from `axis` on (1:
  // channels); elements are moved only where that is needed. `first`: they come first.
  struct Exposed {
    OnnxNetValue value;
    int64_t axis = 1, count = 1;
  };
  Exposed exposed(OnnxNetValue value, const std::vector<size_t>& factors, bool first = false);
  // The value repeated along axes where it has extent 1, so that its extents are these.
  OnnxNetValue repeated(OnnxNetValue value, const std::vector<int64_t>& extents);

  // ---- layers

  // The name of the module whose parameter one of these inputs is, the first that is one; else the
  // node's.
  [[nodiscard]] std::string layer_name(const OnnxNode& node,
                                       const std::vector<size_t>& parameters = {}) const;
  // Adds a layer with one output of its own name. Its other fields are added to what is returned.
  Message& add(const std::string& name, const std::string& type,
               const std::vector<std::string>& bottoms);
  // The same with several outputs.
  Message& add(const std::string& name, const std::string& type,
               const std::vector<std::string>& bottoms, const std::vector<std::string>& tops);
  // `param { lr_mult decay_mult }` of the layer's next array, and its values. `origin`: the file's
  // constant that it is, which says whether it is trained; null: it is none, and is not.
  void weight(Message& layer, const std::string& name, std::vector<int64_t> shape,
              std::vector<float> values, const OnnxTensor* origin, double decay);
  void set(const OnnxNode& node, OnnxNetValue value, size_t output = 0);
  void note(const std::string& text);
  // Outputs of a tensor cut at every index of the axis, or at these indices; cut once.
  std::vector<std::string> cut(const std::string& top, int64_t axis,
                               const std::vector<int64_t>& points, const std::string& name);
  void count_convolution(bool is_batch_norm);
  // Whether the file is an export of this program.
  [[nodiscard]] bool is_of_tandem() const { return file_.producer == "tandem"; }
  // Whether the tensor is the graph's input, or is made of it by constants alone: these prepare
  // images, as dividing by deviations does, and are not trained.
  [[nodiscard]] bool is_prepared(const std::string& top) const { return prepared_.contains(top); }
  [[nodiscard]] bool prepares() const { return prepared_.size() > 1; }
  // `factor`, `shift`: what the first channel is multiplied by, and what is then added.
  void set_prepared(const std::string& top, double factor, double shift) {
    prepared_.insert(top);
    factor_ *= factor;
    shift_ = shift_ * factor + shift;
  }
  // The largest pixel that the file's own preparation is for, 1 or 255, by the first channel; 0:
  // its constants do not tell.
  [[nodiscard]] double largest_pixel() const;

 private:
  void map_node(const OnnxNode& node);
  void mark_needed(const std::string& output);
  void silence_unread();
  void note_shared_weights();
  void note_kept();
  [[noreturn]] void refuse() const;

  const OnnxFile& file_;
  OnnxMapped result_;
  std::map<std::string, OnnxNetValue> values_;
  std::map<std::string, OnnxConstant> computed_;
  std::set<std::string> prepared_, needed_, names_, unknown_, read_tops_, made_tops_;
  std::map<std::string, OnnxNetValue> arranged_;
  std::map<std::string, std::vector<std::string>> cuts_;
  struct Refusal {
    std::string operation, text;
  };
  std::vector<Refusal> refused_;
  std::vector<std::string> kept_;  // arrays that are constants of the file and not trained
  OnnxBudget budget_;
  double factor_ = 1, shift_ = 0;  // of a prepared first channel
  int64_t convolutions_ = 0, batch_norms_ = 0;
};

}  // namespace tandem
