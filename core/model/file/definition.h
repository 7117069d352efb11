// The definition of a net as in its file, Caffe's NetParameter, before anything is checked against
// layer types. Layers keep their whole message, so that the block of a plugin's layer reaches the
// plugin. The user's file is never rewritten.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/numbers/shape.h"
#include "core/model/file/net_state.h"
#include "core/model/file/text_format.h"
#include "core/plugin/attributes.h"

namespace tandem {

struct WeightRule {                     // Caffe's ParamSpec
  std::string name;                     // weights of one name are shared; "": not shared
  std::optional<double> rate_written;   // lr_mult; default: 1, or that of the array's first user
  std::optional<double> decay_written;  // decay_mult
  bool permissive = false;  // share_mode PERMISSIVE: any shape with as many values is accepted

  [[nodiscard]] double rate_multiplier() const { return rate_written.value_or(1); }
  [[nodiscard]] double decay_multiplier() const { return decay_written.value_or(1); }
};
void read_value(const Field& field, const std::string& owner, WeightRule& rule);
void write_value(Message& to, const char* name, const WeightRule& rule);

struct LayerDefinition {
  std::string name, type;
  std::vector<std::string> bottoms, tops;
  std::vector<double> loss_weights;
  std::vector<WeightRule> weight_rules;
  std::vector<StateRule> include, exclude;
  std::vector<bool> propagate_down;  // false: no gradient into that bottom; empty: where needed
  Message body;                      // the whole layer message, in the current form
  Location location;                 // file and line

  // Whether its rules hold in the phase; the default state has level 0 and no stages.
  [[nodiscard]] bool in_phase(int32_t phase, const NetState& state = {}) const;
  // Whether its tops are inputs of the net. A data set replaces such a layer.
  [[nodiscard]] bool is_data() const;
  // "layer 'conv1' (Convolution)"
  [[nodiscard]] std::string title() const;
};

// Whether the tops of layers of that type are inputs of the net (Data, Input, ...).
[[nodiscard]] bool is_data_type(const std::string& type);

// How a data layer prepares images, for the data set that replaces it: Caffe's
// TransformationParameter, new_height and new_width of ImageData, and SSD's resize_param.
struct TransformDefinition {
  double scale = 1;
  bool mirror = false;
  bool gray = false;                            // force_gray, or ImageData's is_color: false
  bool color = false;                           // force_color
  int64_t crop_height = 0, crop_width = 0;      // 0: none
  int64_t resize_height = 0, resize_width = 0;  // before the crop; 0: as they are
  // squash: stretched to that size; pad: all of it between bars; crop: its shorter side.
  std::string fit = "crop";
  std::vector<double> mean_values;
  std::string mean_file;
  int64_t mean_height = 0, mean_width = 0;  // of a mean_file that was found; else 0
};

// An input of a net in one phase.
struct NetInput {
  enum class Role { data, label, more };
  std::string name;
  Role role = Role::data;
  Shape shape;                   // of one sample (n = 1); zeros: as the data
  std::optional<Filler> filler;  // the values, of a DummyData layer; otherwise from the data set
  std::string owner;             // the layer that has it as a top, for messages
  Location location;
};

struct NetDefinition {
  std::string name;
  std::string file;
  std::vector<LayerDefinition> layers;
  std::vector<std::string> inputs;  // old `input:` fields (deploy nets)
  std::vector<Shape> input_shapes;
  NetState state;                         // `state { ... }`, which in_states() merges into others
  std::vector<LayerDefinition> left_out;  // by in_states(), with their rules, for messages
  std::vector<std::string> notes;         // on what is read in another way than it is written

  // The inputs, in the order of the file. The first one that is not of a DummyData layer is the
  // data. The second one is the label if it is one number for a sample, unless the shape of an
  // Input layer says otherwise. All others are `more`, each with a shape. Error for an input that
  // no data set has: WindowData, a third top of a Data layer.
  [[nodiscard]] std::vector<NetInput> net_inputs(int32_t phase) const;
  // From the data layer of the phase, an Input layer or `input_shape`; nullopt without one.
  [[nodiscard]] std::optional<TransformDefinition> transform(int32_t phase) const;
  [[nodiscard]] std::optional<int64_t> batch_size(int32_t phase) const;
  // The shape of a sample that the net was written for: crop_size, or an input shape. Zeros where
  // neither is given.
  [[nodiscard]] Shape input_shape() const;
};

// Error with near names for a field that no data layer has, and for a value that makes no sense. It
// and the four functions of inputs above are in net_inputs.cpp. A data set replaces a data layer,
// so only its transform, batch size and shapes are read.
void check_data_layers(const NetDefinition& net);

// Old forms of Caffe's files are upgraded. Error with file:line:column.
[[nodiscard]] NetDefinition parse_net(const Message& message, const std::string& file);
[[nodiscard]] NetDefinition read_net(const std::filesystem::path& path);
// The same of text that is no file's, as a NetWriter's.
[[nodiscard]] NetDefinition read_net_text(const std::string& text);
// The definition as prototxt of the current form.
[[nodiscard]] std::string write_net(const NetDefinition& net);

}  // namespace tandem
