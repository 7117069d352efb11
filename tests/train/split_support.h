// Runs of strategies whose devices play different roles, and the one-device runs that they are held
// against.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/model/classes.h"
#include "tests/train/run_support.h"

namespace tandem::test {

struct SplitCase {
  std::string strategy;
  int devices = 2;
  RoleOptions roles = {};
  std::string net = "small";                       // of split_net()
  std::map<std::string, std::string> fields = {};  // of the solver
  int64_t batches = 1;                             // iter_size

  [[nodiscard]] std::string name() const {
    std::string text = fmt::format("{}_{}_{}", strategy, net, devices);
    if (roles.conv_devices > 0)
      text += fmt::format("_{}_and_{}", roles.conv_devices, roles.fc_devices);
    for (const char c : roles.groups) {
      if (std::isalnum(c) != 0) text += c;
    }
    if (roles.quota > 0) text += fmt::format("_quota_{}", roles.quota);
    if (roles.eager) text += "_eager";
    text += roles.fc_memory.empty() ? "" : "_" + roles.fc_memory;
    for (const auto& [field, value] : fields) text += "_" + field;
    if (batches > 1) text += fmt::format("_batches_{}", batches);
    return text;
  }
};

inline void PrintTo(const SplitCase& c, std::ostream* out) {
  *out << c.name();
}

// With batch normalisation on both sides of the last convolution and between FC layers.
inline NetDefinition normalised_split_net() {
  const std::string filler = "weight_filler { type: \"xavier\" }";
  return NetWriter("norm")
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
      .definition();
}

// "small": a narrow AlexNet; "mlp": fully connected, with dropout in place below what runs in
// place, too; "speech": deep, with sigmoids; "norm": as above.
inline NetDefinition split_net(const std::string& name) {
  if (name == "small") return with_class_count(small_net(), 5);
  if (name == "norm") return normalised_split_net();
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
  return net.layer("score", "InnerProduct", dense(5)).loss().definition();
}

// Five classes, so that the last layer can be divided over four devices.
class SplitRuns : public Runs {
 protected:
  static constexpr int classes = 5;
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    make_image_folder(folder_->path() / "data", "train", classes, 10);
    make_image_folder(folder_->path() / "data", "val", classes, 3);
  }
  static TrainOptions one_device(const SplitCase& c, int threads, int64_t steps = 20) {
    TrainOptions o = options(steps);
    o.net_definition = split_net(c.net);
    o.solver_fields = c.fields;
    if (c.fields.contains("type") && c.fields.at("type") == "LARS") o.rate = 1.0;
    o.devices = "cpu:1";
    o.strategy = "sequential";
    o.machine.threads = threads;
    return o;
  }
  static TrainOptions many(const SplitCase& c, int64_t steps = 20) {
    TrainOptions o = one_device(c, c.devices, steps);
    o.devices = fmt::format("cpu:{}", c.devices);
    o.strategy = c.strategy;
    o.strategy_options.roles = c.roles;
    o.batch /= c.batches;
    if (c.batches > 1) o.solver_fields["iter_size"] = std::to_string(c.batches);
    return o;
  }
  // The yardstick: one device that only sums the batch in other orders, by threads and by parts.
  struct Reference {
    Weights start, weights;
    double yardstick = 0;
  };
  static const Reference& reference(const SplitCase& c) {
    static std::map<std::pair<std::string, std::map<std::string, std::string>>, Reference> known;
    const std::pair key(c.net, c.fields);
    if (const auto found = known.find(key); found != known.end()) return found->second;
    Reference& r = known[key];
    TrainOptions still = one_device(c, 1, 1);
    still.rate = 0.0;
    r.start = run(still);
    r.weights = run(one_device(c, 1));
    for (const int threads : {2, 3, 4}) {
      r.yardstick = std::max(r.yardstick,
                             largest_difference(r.weights, run(one_device(c, threads)), r.start));
    }
    for (const int64_t parts : {2, 3}) {
      TrainOptions o = one_device(c, 1);
      o.batch /= parts;
      o.solver_fields["iter_size"] = std::to_string(parts);
      r.yardstick = std::max(r.yardstick, largest_difference(r.weights, run(o), r.start));
    }
    return r;
  }
};

inline RoleOptions conv_and_fc(int conv, int fc) {
  RoleOptions roles;
  roles.conv_devices = conv;
  roles.fc_devices = fc;
  return roles;
}

inline RoleOptions in_groups(const std::string& groups) {
  RoleOptions roles;
  roles.groups = groups;
  return roles;
}

inline RoleOptions with_quota(int quota) {
  RoleOptions roles;
  roles.quota = quota;
  return roles;
}

inline RoleOptions eager(int quota) {
  RoleOptions roles = with_quota(quota);
  roles.eager = true;
  return roles;
}

inline RoleOptions extended(int conv, int fc) {
  RoleOptions roles = conv_and_fc(conv, fc);
  roles.fc_memory = "extended";
  return roles;
}

// The devices whose bits are set, and the others.
inline std::string groups_of(int devices, int mask) {
  std::string errors, weights;
  for (int device = 0; device < devices; ++device) {
    std::string& group = (mask >> device & 1) != 0 ? errors : weights;
    group += fmt::format("{}{}", group.empty() ? "" : ",", device);
  }
  return fmt::format("E={}/W={}", errors, weights);
}

inline std::vector<SplitCase> split_cases() {
  std::vector<SplitCase> cases;
  for (const auto& [conv, fc] : {std::pair{1, 1}, {2, 1}, {3, 1}, {2, 2}}) {
    cases.push_back({"hybrid", conv + fc, conv_and_fc(conv, fc)});
  }
  cases.push_back({"hybrid", 3, conv_and_fc(2, 1), "small", {{"clip_gradients", "0.3"}}});
  cases.push_back({"hybrid", 4, conv_and_fc(2, 2), "small", {}, 2});
  const std::map<std::string, std::string> lars{{"type", "LARS"}, {"trust_coefficient", "0.01"}};
  cases.push_back({"hybrid", 3, conv_and_fc(2, 1), "small", lars});
  cases.push_back({"hybrid", 3, conv_and_fc(2, 1), "norm"});
  cases.push_back({"hybrid", 4, conv_and_fc(2, 2), "norm"});
  const auto asymmetric = [&](int devices, const std::string& groups, const std::string& net,
                              const std::map<std::string, std::string>& fields = {},
                              int64_t batches = 1) {
    cases.push_back({"asymmetric", devices, in_groups(groups), net, fields, batches});
  };
  asymmetric(2, "E=0/W=1", "small");
  asymmetric(3, "E=1/W=0,2", "small");
  asymmetric(4, "E=0,2/W=1,3", "small");
  asymmetric(4, "E=0,1,3/W=2", "small");
  asymmetric(4, "E=3/W=0,1,2", "speech");
  for (int devices = 2; devices <= 4; ++devices) {
    for (int mask = 1; mask + 1 < 1 << devices; ++mask) {
      asymmetric(devices, groups_of(devices, mask), mask % 3 == 0 ? "speech" : "mlp");
    }
  }
  asymmetric(3, "E=0/W=1,2", "small", {{"clip_gradients", "0.3"}});
  asymmetric(3, "E=0/W=1,2", "mlp", {}, 2);
  const auto fc_parallel = [&](int devices, int quota, const std::string& net,
                               const std::map<std::string, std::string>& fields = {},
                               int64_t batches = 1) {
    cases.push_back({"fc_parallel", devices, with_quota(quota), net, fields, batches});
  };
  for (const char* net : {"small", "mlp", "speech"}) {
    fc_parallel(2, 2, net);
    fc_parallel(3, 2, net);
    fc_parallel(4, 4, net);
  }
  fc_parallel(2, 1, "mlp");
  fc_parallel(3, 1, "speech");
  fc_parallel(4, 3, "small");
  fc_parallel(4, 1, "small");
  fc_parallel(4, 2, "mlp");
  fc_parallel(2, 2, "small", {{"clip_gradients", "0.3"}});
  fc_parallel(3, 2, "mlp", lars);
  asymmetric(3, "E=0/W=1,2", "mlp", lars);
  fc_parallel(2, 1, "small", {}, 2);
  fc_parallel(3, 3, "norm");
  cases.push_back({"fc_parallel", 2, eager(1), "mlp"});
  cases.push_back({"fc_parallel", 3, eager(2), "speech"});
  cases.push_back({"fc_parallel", 4, eager(1), "small"});
  cases.push_back({"fc_parallel", 4, eager(2), "mlp", {{"clip_gradients", "0.3"}}, 2});
  cases.push_back({"hybrid", 2, extended(1, 1)});
  cases.push_back({"hybrid", 4, extended(2, 2), "small", {{"type", "Adam"}}});
  cases.push_back({"hybrid", 3, extended(2, 1), "norm", {{"clip_gradients", "0.3"}}, 2});
  return cases;
}

inline std::vector<SplitCase> resume_cases() {
  return {{"hybrid", 3, conv_and_fc(2, 1)},
          {"asymmetric", 4, in_groups("E=0,2/W=1,3"), "mlp"},
          {"fc_parallel", 3, with_quota(2), "small"},
          {"hybrid", 3, extended(2, 1)}};
}

}  // namespace tandem::test
