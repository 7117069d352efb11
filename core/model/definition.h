// A net as its file says it, before anything is checked against layer types: Caffe's NetParameter.
// Layers keep their whole message, so that a plugin's own blocks reach it. The user's file is never
// rewritten.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/attributes.h"
#include "core/base/shape.h"
#include "core/model/net_state.h"
#include "core/model/text_format.h"

namespace tandem {

struct WeightRule {                     // Caffe's ParamSpec
  std::string name;                     // shared by name; "" = not shared
  std::optional<double> rate_written;   // lr_mult; not written: 1, or as the array's first user
  std::optional<double> decay_written;  // decay_mult
  bool permissive = false;  // share_mode PERMISSIVE: any shape with as many values will do

  [[nodiscard]] double rate_multiplier() const { return rate_written.value_or(1); }
  [[nodiscard]] double decay_multiplier() const { return decay_written.value_or(1); }
};

struct LayerDefinition {
  std::string name, type;
  std::vector<std::string> bottoms, tops;
  std::vector<double> loss_weights;
  std::vector<WeightRule> weight_rules;
  std::vector<StateRule> include, exclude;
  std::vector<bool> propagate_down;  // false: no gradient into that bottom; empty: wherever needed
  Message body;                      // the whole layer message, in the current form
  Location location;                 // file and line

  // In the state of level 0 without stages; see in_states() for others.
  [[nodiscard]] bool in_phase(int32_t phase) const;
  // Its tops are the net's inputs: a data set stands in for it, whatever its type was (Data, Input,
  // ...).
  [[nodiscard]] bool is_data() const;
  // "layer 'conv1' (Convolution)"
  [[nodiscard]] std::string title() const;
};

// Caffe's TransformationParameter of a data layer, for the data set that replaces it.
struct TransformDefinition {
  double scale = 1;
  bool mirror = false;
  int64_t crop_size = 0;
  std::vector<double> mean_values;
  bool has_mean_file = false;  // its mean is then taken from the training data
};

// What a net is fed with from outside in one phase, in the order of its file.
struct NetInput {
  enum class Role { data, label, more };
  std::string name;
  Role role = Role::data;
  Shape shape;                   // of one sample (n = 1); zeros: the data decide
  std::optional<Filler> filler;  // of a DummyData layer: the values; else the data set gives them
  std::string owner;             // whose top it is, for messages: "layer 'data' (Data)"
  Location location;
};

struct NetDefinition {
  std::string name;
  std::string file;
  std::vector<LayerDefinition> layers;
  std::vector<std::string> inputs;  // old `input:` fields (deploy nets)
  std::vector<Shape> input_shapes;
  NetState state;  // `state { ... }`: what in_states() adds to the states it is given
  std::vector<LayerDefinition> left_out;  // by in_states(), their rules as written: for messages

  // The first input that no DummyData layer makes is the data; the second one the labels if it is a
  // number a sample (which the shape of an Input layer may deny). All others are `more`, each with
  // a shape. Error for what no data set gives: WindowData, a third top of a Data layer.
  [[nodiscard]] std::vector<NetInput> net_inputs(int32_t phase) const;
  // From the data layer of that phase (or an Input layer / `input_shape`); nothing if there is
  // none.
  [[nodiscard]] std::optional<TransformDefinition> transform(int32_t phase) const;
  [[nodiscard]] std::optional<int64_t> batch_size(int32_t phase) const;
  // Height/width/channels the net was written for: crop_size, or an input shape; zeros if not said.
  [[nodiscard]] Shape input_shape() const;
};

[[nodiscard]] NetDefinition parse_net(const Message& message, const std::string& file);
[[nodiscard]] NetDefinition read_net(const std::filesystem::path& path);
[[nodiscard]] std::string write_net(const NetDefinition& net);

// A name from the models' folder ("alexnet": TANDEM_MODEL_PATH, the source tree's examples/models,
// the installed share/tandem/models) or a file's path. Error with near names if there is neither.
[[nodiscard]] std::filesystem::path find_net(const std::string& name_or_path);
[[nodiscard]] std::vector<std::string> model_names();
[[nodiscard]] bool is_model_name(const std::string& name_or_path);

// The layer whose num_output is the class count: the last one before the loss that has one, in a
// block of any name. Returns its present num_output. Error if there is none.
[[nodiscard]] int64_t class_count(const NetDefinition& net);
// Whether some loss or metric takes the labels for classes. If not, the labels are targets, or say
// whether a pair is alike, or there are none (an autoencoder): any number of classes will do.
[[nodiscard]] bool has_classes(const NetDefinition& net);
// A copy in which that layer has `classes` outputs (and another name, "<name>_<classes>", so that
// weights by name are never mixed up).
[[nodiscard]] NetDefinition with_class_count(const NetDefinition& net, int64_t classes);

}  // namespace tandem
