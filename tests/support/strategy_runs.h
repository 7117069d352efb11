// Runs of every strategy, and the one-device runs that they are held against.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "tests/support/run_support.h"

#include "core/model/adapted/classes.h"
#include "core/model/net/frozen.h"
#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"
#include "include/tandem/net.h"
#include "include/tandem/plugins.h"
#include "tests/support/folders.h"

namespace tandem::test {

struct StrategyCase {
  std::string strategy;
  int devices = 2;
  StrategyOptions options = {};
  std::string net = "small";                       // of strategy_net()
  std::map<std::string, std::string> fields = {};  // of the solver
  int64_t batches = 1;                             // iter_size

  [[nodiscard]] std::string name() const {
    std::string text = fmt::format("{}_{}_{}", strategy, net, devices);
    for (const char c : " " + to_text(built_in_strategies().at(strategy), options)) {
      if (std::isalnum(c) != 0) text += c;
      if (c == ' ' && text.back() != '_') text += '_';
    }
    if (text.back() == '_') text.pop_back();
    for (const auto& [field, value] : fields) text += "_" + field;
    if (batches > 1) text += fmt::format("_batches_{}", batches);
    return text;
  }
};

inline void PrintTo(const StrategyCase& c, std::ostream* out) {
  *out << c.name();
}

// With batch normalization on both sides of the last convolution and between FC layers.
inline NetDefinition normalised_strategy_net() {
  const std::string filler = "weight_filler { type: \"xavier\" }";
  return read_net_text(
      NetWriter("norm")
          .data(20)
          .layer("conv1", "Convolution",
                 "convolution_param { num_output: 8 kernel_size: 3 stride: 2 " + filler + " }")
          .layer("norm1", "BatchNorm")
          .layer("relu1", "ReLU")
          .layer("conv2", "Convolution",
                 "convolution_param { num_output: 8 kernel_size: 3 " + filler + " }")
          .layer("norm2", "BatchNorm")
          .layer("relu2", "ReLU")
          .layer("fc3", "InnerProduct", "inner_product_param { num_output: 16 " + filler + " }")
          .layer("norm3", "BatchNorm")
          .layer("score", "InnerProduct", "inner_product_param { num_output: 5 " + filler + " }")
          .loss()
          .text());
}

// With test.Join, which has two inputs, a trained weight and a kink, as the first layer, as the
// last one before the FC layers (of which a strategy may take it for the last convolution), or
// after them.
inline NetDefinition joined_strategy_net(const std::string& place) {
  const std::string filler = "weight_filler { type: \"xavier\" }";
  const std::string filter =
      "convolution_param { num_output: 6 kernel_size: 5 stride: 4 " + filler + " }";
  const std::string dense = "inner_product_param { num_output: 16 " + filler + " }";
  NetWriter net(place);
  net.data(20);
  if (place == "join_first") {
    net.layer("join", "test.Join", {"data", "data"}, {"join"})
        .layer("conv1", "Convolution", filter);
  } else {
    net.layer("conv1", "Convolution", {"data"}, {"conv1"}, filter);
  }
  if (place == "join_last_convolution") {
    net.layer("conv2", "Convolution", {"data"}, {"conv2"}, filter)
        .layer("join", "test.Join", {"conv1", "conv2"}, {"join"});
  }
  if (place == "join_dense") {
    net.layer("fc1", "InnerProduct", {"conv1"}, {"fc1"}, dense)
        .layer("fc2", "InnerProduct", {"conv1"}, {"fc2"}, dense)
        .layer("join", "test.Join", {"fc1", "fc2"}, {"join"});
  } else {
    net.layer("fc1", "InnerProduct", dense);
  }
  return read_net_text(
      net.layer("score", "InnerProduct", "inner_product_param { num_output: 5 " + filler + " }")
          .loss()
          .text());
}

// "heads": an auxiliary head, and last convolutions that are branches side by side. "residual": a
// sum that passes the last convolution by, and one FC layer.
inline NetDefinition branched_strategy_net(const std::string& name) {
  const std::string filler = " weight_filler { type: \"xavier\" }";
  const auto filter = [&](int outputs, int kernel, const std::string& more) {
    return fmt::format("convolution_param {{ num_output: {} kernel_size: {} {}{} }}", outputs,
                       kernel, more, filler);
  };
  const std::string dense = "inner_product_param { num_output: 5" + filler + " }";
  NetWriter net(name);
  net.data(20)
      .layer("conv1", "Convolution", filter(8, 5, "stride: 2"))
      .layer("relu1", "ReLU", {"conv1"}, {"conv1"});
  if (name == "heads") {
    net.layer("aux", "InnerProduct", {"conv1"}, {"aux"}, dense)
        .layer("aux_loss", "SoftmaxWithLoss", {"aux", "label"}, {"aux_loss"}, "loss_weight: 0.3")
        .layer("conv2a", "Convolution", {"conv1"}, {"conv2a"}, filter(4, 1, ""))
        .layer("conv2b", "Convolution", {"conv1"}, {"conv2b"}, filter(6, 3, "pad: 1"))
        .layer("joined", "Concat", {"conv2a", "conv2b"}, {"joined"});
  } else {
    net.layer("conv2", "Convolution", {"conv1"}, {"conv2"}, filter(8, 3, "pad: 1"))
        .layer("norm2", "BatchNorm")
        .layer("joined", "Eltwise", {"norm2", "conv1"}, {"joined"})
        .layer("relu2", "ReLU", {"joined"}, {"joined"});
  }
  net.layer("pool3", "Pooling", {"joined"}, {"pool3"},
            "pooling_param { pool: AVE kernel_size: 4 stride: 4 }");
  if (name == "heads") {
    net.layer("fc3", "InnerProduct", "inner_product_param { num_output: 12" + filler + " }")
        .layer("relu3", "ReLU");
  }
  return read_net_text(net.layer("score", "InnerProduct", dense).loss().text());
}

inline NetDefinition frozen_strategy_net(const std::string& name);

// "labels" and "values": "small" on images with five labels, or five numbers, each.
inline bool has_targets(const std::string& net) {
  return net == "labels" || net == "values";
}

// "small": a narrow AlexNet; "mlp": fully connected, with dropout in place below what runs in
// place, too; "speech": deep, with sigmoids; "norm": as above.
inline NetDefinition strategy_net(const std::string& name) {
  if (name == "small" || has_targets(name)) return with_class_count(small_net(), 5);
  if (name.starts_with("join_")) return joined_strategy_net(name);
  if (name.starts_with("frozen_")) return frozen_strategy_net(name);
  if (name == "heads" || name == "residual") return branched_strategy_net(name);
  if (name == "norm") return normalised_strategy_net();
  const bool speech = name == "speech";
  const std::string filler = " weight_filler { type: \"xavier\" }";
  const auto dense = [&](int outputs) {
    return fmt::format("inner_product_param {{ num_output: {}{} }}", outputs, filler);
  };
  NetWriter net(name);
  net.data(20);
  for (int i = 1; i <= (speech ? 4 : 2); ++i) {
    const std::string fc = fmt::format("fc{}", i);
    net.layer(fc, "InnerProduct", dense(speech ? 21 : 37));
    if (!speech) {
      net.layer(fmt::format("drop{}", i), "Dropout", {fc}, {fc},
                "dropout_param { dropout_ratio: 0.4 }");
    }
    net.layer(fmt::format("act{}", i), speech ? "Sigmoid" : "ReLU", {fc}, {fc});
  }
  return read_net_text(net.layer("score", "InnerProduct", dense(5)).loss().text());
}

// "frozen_norm", "frozen_small": the net with its first layer and one in the middle not trained,
// and without kinks: a value within rounding of one may fall on either side of it.
inline NetDefinition frozen_strategy_net(const std::string& name) {
  std::string text = write_net(strategy_net(name.substr(name.find('_') + 1)));
  for (const auto& [kink, smooth] : {std::pair{"\"ReLU\"", "\"TanH\""}, {"MAX", "AVE"}}) {
    for (size_t at; (at = text.find(kink)) != std::string::npos;) {
      text.replace(at, std::string_view(kink).size(), smooth);
    }
  }
  const NetDefinition net = read_net_text(text);
  NetOptions options;
  options.data = {1, 3, 20, 20};
  options.device_kind = "";
  return with_frozen_layers(net, build_net(net, Registry::with_defaults(), options),
                            {"conv1", "fc3"});
}

// Five classes, so that the last layer can be divided over four devices.
class StrategyRuns : public Runs {
 protected:
  static constexpr int classes = 5;
  static void SetUpTestSuite() {
    add_plugin_folder(test::test_plugin_folder() / "run_time");
    folder_ = new TempFolder;
    make_image_folder(folder_->path() / "data", "train", classes, 10);
    make_image_folder(folder_->path() / "data", "val", classes, 3);
    write_lists();
  }
  // Labels that a net can learn and one that it cannot; numbers of several sizes.
  static void write_lists() {
    std::string labels = "path,split,odd,high,low,first,chance\n";
    std::string values = "path,split,number,square,small,large,chance\n";
    for (const auto& [split, count] : {std::pair{"train", 10}, {"val", 3}}) {
      for (int label = 0; label < classes; ++label) {
        for (int i = 0; i < count; ++i) {
          const std::string start = fmt::format("data/{0}/{1}/{0}{2}_{3}.ppm,{0},", split,
                                                static_cast<char>('a' + label), label, i);
          labels += start + fmt::format("{:d},{:d},{:d},{:d},{:d}\n", label % 2 == 1, label > 2,
                                        label < 2, label == 0, i * 7 % 3 == 1);
          values += start + fmt::format("{:.1f},{},{},{},{}\n", 1.0 * label, label * label,
                                        0.001 * label, 1000 - label, i * 7 % 5);
        }
      }
    }
    (void)folder_->write("labels.csv", labels);
    (void)folder_->write("values.csv", values);
  }
  static TrainOptions one_device(const StrategyCase& c, int threads, int64_t steps = 20) {
    TrainOptions o = options(steps);
    o.net_text = write_net(strategy_net(c.net));
    if (has_targets(c.net)) o.data = (folder_->path() / (c.net + ".csv")).string();
    o.solver_fields = c.fields;
    if (c.fields.contains("type") && c.fields.at("type") == "LARS") o.rate = 1.0;
    o.devices = "cpu:1";
    o.strategy = "sequential";
    o.machine.threads = threads;
    return o;
  }
  static TrainOptions many(const StrategyCase& c, int64_t steps = 20) {
    TrainOptions o = one_device(c, c.devices, steps);
    o.devices = fmt::format("cpu:{}", c.devices);
    o.strategy = c.strategy;
    o.strategy_options = c.options;
    o.batch /= c.batches;
    if (c.batches > 1) o.solver_fields["iter_size"] = std::to_string(c.batches);
    return o;
  }
  // What gives the tolerance: one device that only sums the batch in other orders, by threads and
  // by parts.
  struct Reference {
    Weights start, weights;
    double reordered = 0;
  };
  static const Reference& reference(const StrategyCase& c) {
    static std::map<std::pair<std::string, std::map<std::string, std::string>>, Reference> known;
    const std::pair key(c.net, c.fields);
    if (const auto found = known.find(key); found != known.end()) return found->second;
    Reference& r = known[key];
    TrainOptions still = one_device(c, 1, 1);
    still.rate = 0.0;
    r.start = run(still);
    r.weights = run(one_device(c, 1));
    for (const int threads : {2, 3, 4}) {
      r.reordered =
          std::max(r.reordered, max_difference(r.weights, run(one_device(c, threads)), r.start));
    }
    for (const int64_t parts : {2, 3}) {
      TrainOptions o = one_device(c, 1);
      o.batch /= parts;
      o.solver_fields["iter_size"] = std::to_string(parts);
      r.reordered = std::max(r.reordered, max_difference(r.weights, run(o), r.start));
    }
    return r;
  }
};

inline StrategyOptions conv_and_fc(int conv, int fc) {
  return {{"conv_devices", conv}, {"fc_devices", fc}};
}
inline StrategyOptions in_groups(const std::string& groups) {
  return {{"groups", groups}};
}
inline StrategyOptions with_quota(int quota) {
  return {{"quota", quota}};
}
inline StrategyOptions eager(int quota) {
  return {{"quota", quota}, {"eager", true}};
}
inline StrategyOptions extended(int conv, int fc, const std::string& memory = "extended") {
  return {{"conv_devices", conv}, {"fc_devices", fc}, {"fc_memory", memory}};
}

// Every strategy in each of its ways, and some with other nets and solvers.
inline std::vector<StrategyCase> strategy_cases() {
  std::vector<StrategyCase> cases;
  for (int devices = 1; devices <= 4; ++devices) {
    for (const Strategy& strategy : built_in_strategies()) {
      for (const StrategyOptions& options : strategy.lossless_cases(devices)) {
        cases.push_back({strategy.name, devices, options});
      }
    }
  }
  cases.push_back({"hybrid", 3, conv_and_fc(2, 1), "small", {{"clip_gradients", "0.3"}}});
  cases.push_back({"hybrid", 4, conv_and_fc(2, 2), "small", {}, 2});
  const std::map<std::string, std::string> lars{{"type", "LARS"}, {"trust_coefficient", "0.01"}};
  cases.push_back({"hybrid", 3, conv_and_fc(2, 1), "small", lars});
  cases.push_back({"hybrid", 3, conv_and_fc(2, 1), "norm"});
  cases.push_back({"hybrid", 4, conv_and_fc(2, 2), "norm"});
  for (const StrategyOptions& options : built_in_strategies().at("asymmetric").lossless_cases(3)) {
    for (const char* net : {"mlp", "speech"}) cases.push_back({"asymmetric", 3, options, net});
  }
  cases.push_back({"asymmetric", 2, in_groups("E=0/W=1"), "mlp"});
  cases.push_back({"asymmetric", 4, in_groups("E=0,2/W=1,3"), "mlp"});
  cases.push_back({"asymmetric", 4, in_groups("E=3/W=0,1,2"), "speech"});
  cases.push_back({"asymmetric", 3, in_groups("E=0/W=1,2"), "small", {{"clip_gradients", "0.3"}}});
  cases.push_back({"asymmetric", 3, in_groups("E=0/W=1,2"), "mlp", {}, 2});
  cases.push_back({"asymmetric", 3, in_groups("E=0/W=1,2"), "mlp", lars});
  for (const char* net : {"mlp", "speech"}) {
    cases.push_back({"fc_parallel", 2, with_quota(2), net});
    cases.push_back({"fc_parallel", 3, with_quota(2), net});
    cases.push_back({"fc_parallel", 4, with_quota(4), net});
  }
  cases.push_back({"fc_parallel", 2, with_quota(1), "mlp"});
  cases.push_back({"fc_parallel", 3, with_quota(1), "speech"});
  cases.push_back({"fc_parallel", 4, with_quota(2), "mlp"});
  cases.push_back({"fc_parallel", 2, with_quota(2), "small", {{"clip_gradients", "0.3"}}});
  cases.push_back({"fc_parallel", 3, with_quota(2), "mlp", lars});
  cases.push_back({"fc_parallel", 2, with_quota(1), "small", {}, 2});
  cases.push_back({"fc_parallel", 3, with_quota(3), "norm"});
  cases.push_back({"fc_parallel", 2, eager(1), "mlp"});
  cases.push_back({"fc_parallel", 3, eager(2), "speech"});
  cases.push_back({"fc_parallel", 4, eager(2), "mlp", {{"clip_gradients", "0.3"}}, 2});
  const auto divided = [](const std::string& divide) {
    return StrategyOptions{{"divide", divide}};
  };
  for (const char* net : {"mlp", "speech", "norm"}) {
    cases.push_back({"mixed", 4, divided("all=2"), net});
  }
  cases.push_back({"mixed", 4, divided("all=2"), "small", {{"clip_gradients", "0.3"}}, 2});
  cases.push_back({"mixed", 4, divided("all=2"), "mlp", lars});
  for (const char* net : {"join_first", "join_last_convolution", "join_dense"}) {
    for (const Strategy& strategy : built_in_strategies()) {
      cases.push_back({strategy.name, 3, strategy.lossless_cases(3).front(), net});
    }
  }
  for (const Strategy& strategy : built_in_strategies()) {
    // Asymmetric refuses statistics of the batch.
    const char* net = strategy.name == "asymmetric" ? "frozen_small" : "frozen_norm";
    cases.push_back({strategy.name, 3, strategy.lossless_cases(3).front(), net});
    for (const char* targets : {"labels", "values"}) {
      cases.push_back({strategy.name, 2, strategy.lossless_cases(2).front(), targets});
    }
  }
  cases.push_back({"hybrid", 4, extended(2, 2), "small", {{"type", "Adam"}}});
  cases.push_back({"hybrid", 3, extended(2, 1), "norm", {{"clip_gradients", "0.3"}}, 2});
  cases.push_back({"hybrid", 4, extended(2, 2, "/tmp/"), "small", {{"type", "Adam"}}});
  cases.push_back({"hybrid", 3, extended(2, 1, "/tmp/"), "small", {}, 2});
  for (const char* net : {"heads", "residual"}) {
    cases.push_back({"hybrid", 2, conv_and_fc(1, 1), net});
    cases.push_back({"hybrid", 3, conv_and_fc(2, 1), net, {{"clip_gradients", "0.3"}}, 2});
    cases.push_back({"hybrid", 4, conv_and_fc(2, 2), net});
    cases.push_back({"fc_parallel", 3, with_quota(3), net});
    cases.push_back({"mixed", 4, divided("all=2"), net});
  }
  return cases;
}

inline std::vector<StrategyCase> resume_cases() {
  return {{"hybrid", 3, conv_and_fc(2, 1)},
          {"asymmetric", 4, in_groups("E=0,2/W=1,3"), "mlp"},
          {"fc_parallel", 3, with_quota(2), "small"},
          {"mixed", 4, {{"divide", std::string("all=2")}}, "small"},
          {"hybrid", 4, conv_and_fc(2, 2), "heads"},
          {"hybrid", 3, extended(2, 1, "/tmp/")},
          {"hybrid", 3, extended(2, 1)},
          {"layerwise", 2, {}, "labels"},
          {"fc_parallel", 2, with_quota(2), "values"}};
}

}  // namespace tandem::test
