// Weights as timm and torchvision publish them, by the whole program: a tiny architecture with
// PyTorch's names of arrays, whose probabilities are computed here, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/folders.h"
#include "tests/support/page_data.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* net_text = R"(name: "dot"
layer {
  name: "data" type: "Data" top: "data" top: "label"
  transform_param { crop_size: 8 }
  data_param { batch_size: 4 }
}
layer { name: "std" type: "Scale" bottom: "data" top: "input" param { lr_mult: 0 } }
layer {
  name: "conv1" type: "Convolution" bottom: "input" top: "conv1"
  convolution_param { num_output: 2 kernel_size: 1 bias_term: false
                      weight_filler { type: "xavier" } }
}
layer {
  name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1"
  batch_norm_param { moving_average_fraction: 0.9 scale_bias: true }
}
layer { name: "relu" type: "ReLU" bottom: "conv1" top: "conv1" }
layer {
  name: "pool" type: "Pooling" bottom: "conv1" top: "pool"
  pooling_param { pool: AVE global_pooling: true }
}
layer {
  name: "fc" type: "InnerProduct" bottom: "pool" top: "fc"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
)";

using Triple = std::array<double, 3>;
constexpr Triple of_imagenet_mean{0.485, 0.456, 0.406}, of_imagenet_std{0.229, 0.224, 0.225};

struct Array {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using Arrays = std::map<std::string, Array>;

Arrays dot_arrays() {
  return {{"conv1.weight", {{2, 3, 1, 1}, {0.5F, -0.25F, 1, -0.75F, 0.5F, 0.25F}}},
          {"bn1.weight", {{2}, {1.5F, 0.5F}}},
          {"bn1.bias", {{2}, {0.25F, 2}}},
          {"bn1.running_mean", {{2}, {0.5F, -1}}},
          {"bn1.running_var", {{2}, {4, 0.25F}}},
          {"fc.weight", {{3, 2}, {0.5F, 0.25F, -0.5F, 1, 0.125F, -0.25F}}},
          {"fc.bias", {{3}, {0.1F, -0.2F, 0.3F}}}};
}

// A safetensors file as PyTorch's, with its counter of steps, which is an integer.
std::string safetensors(const Arrays& arrays) {
  json header = {{"__metadata__", {{"format", "pt"}}},
                 {"bn1.num_batches_tracked",
                  {{"dtype", "I64"}, {"shape", json::array()}, {"data_offsets", {0, 8}}}}};
  std::string data(8, '\0');
  for (const auto& [name, array] : arrays) {
    const size_t begin = data.size(), bytes = array.values.size() * sizeof(float);
    data.resize(begin + bytes);
    std::memcpy(data.data() + begin, array.values.data(), bytes);
    header[name] = {
        {"dtype", "F32"}, {"shape", array.shape}, {"data_offsets", {begin, begin + bytes}}};
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + text + data;
}

// What the net makes of a picture of one color.
std::vector<double> expected(const Triple& rgb, const Triple& mean, const Triple& deviation,
                             double eps = 1e-5) {
  const Arrays arrays = dot_arrays();
  const auto value = [&arrays](const char* name, size_t i) {
    return static_cast<double>(arrays.at(name).values[i]);
  };
  std::array<double, 2> pooled{};
  for (size_t c = 0; c < 2; ++c) {
    double sum = 0;
    for (size_t i = 0; i < 3; ++i) {
      sum += value("conv1.weight", 3 * c + i) * (rgb[i] / 255 - mean[i]) / deviation[i];
    }
    const double normal =
        (sum - value("bn1.running_mean", c)) / std::sqrt(value("bn1.running_var", c) + eps);
    pooled[c] = std::max(0.0, normal * value("bn1.weight", c) + value("bn1.bias", c));
  }
  std::vector<double> result;
  double total = 0;
  for (size_t c = 0; c < 3; ++c) {
    result.push_back(std::exp(value("fc.weight", 2 * c) * pooled[0] +
                              value("fc.weight", 2 * c + 1) * pooled[1] + value("fc.bias", c)));
    total += result.back();
  }
  for (double& one : result) one /= total;
  return result;
}

class PublishedWeights : public testing::Test {
 protected:
  PublishedWeights() {
    desk_.write("models/pretrained/dot.prototxt", net_text);
    const fs::path names = test::source_folder() / "examples/models/pretrained/torch.names";
    desk_.write("models/pretrained/torch.names", test::read_text(names));
    write(dot_arrays());
    std::string picture = "P6 8 8 255\n";
    for (int i = 0; i < 64; ++i) picture += {'\xC8', '\x32', '\x64'};
    desk_.write("picture.ppm", picture);
  }
  void write(const Arrays& arrays) {
    desk_.write("dot.safetensors", safetensors(arrays));
    desk_.write("timm/model.safetensors", safetensors(arrays));
    configure(json::object());
  }
  // timm's config.json with these entries changed; null takes one away.
  void configure(const json& changes) {
    json tree = {{"architecture", "dot"},
                 {"num_classes", 3},
                 {"pretrained_cfg",
                  {{"tag", "a1_in1k"},
                   {"mean", {0.5, 0.4, 0.3}},
                   {"std", {0.25, 0.5, 0.2}},
                   {"crop_pct", 0.8},
                   {"input_size", {3, 8, 8}},
                   {"interpolation", "bicubic"},
                   {"license", "apache-2.0"},
                   {"num_classes", 3}}}};
    tree.merge_patch(changes);
    desk_.write("timm/config.json", tree.dump());
  }
  [[nodiscard]] Outcome tandem(const std::string& arguments) const {
    return desk_.tandem(arguments, models());
  }
  [[nodiscard]] std::string refusal(const std::string& arguments) const {
    const std::string text = desk_.refusal(arguments, models());
    EXPECT_FALSE(fs::exists(desk_ / "run")) << "it left a run folder";
    return text;
  }
  [[nodiscard]] std::vector<double> probabilities() const {
    const Outcome outcome = tandem("predict --run run picture.ppm --json");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    if (outcome.code != 0) return {};
    std::map<std::string, double> found;
    const json tree = json::parse(outcome.output);
    for (const json& score : tree.at(0).at("scores")) {
      found[score.at("class")] = score.at("probability");
    }
    std::vector<double> result;
    for (const auto& [name, probability] : found) result.push_back(probability);
    return result;
  }
  [[nodiscard]] std::string models() const {
    return "TANDEM_MODEL_PATH='" + (desk_ / "models").string() + "'";
  }

  Desk desk_;
};

constexpr Triple color{200, 50, 100};

TEST_F(PublishedWeights, OfATimmFolderGiveTheProbabilitiesOfItsPreparation) {
  const Outcome outcome = tandem("import timm --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("dot of 'timm/model.safetensors', license apache-2.0"),
                    HasSubstr("mean 0.5 0.4 0.3, std 0.25 0.5 0.2"),
                    HasSubstr("resized to 10 (bicubic as by Pillow) and cropped to 8"),
                    HasSubstr("run folder: run"), Not(HasSubstr("num_batches_tracked"))));
  const std::vector<double> right = expected(color, {0.5, 0.4, 0.3}, {0.25, 0.5, 0.2});
  const std::vector<double> found = probabilities();
  ASSERT_EQ(found.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[i], right[i], 1e-6) << i;
}

TEST_F(PublishedWeights, OfAFileAloneHaveTheArchitectureNamedAndThePreparationOfImagenet) {
  EXPECT_THAT(refusal("import dot.safetensors --out run"), HasSubstr("--model is missing"));
  EXPECT_THAT(refusal("import nowhere.safetensors --out run"), HasSubstr("do not exist"));
  EXPECT_THAT(refusal("import dot.safetensors --model dots --out run"),
              AllOf(HasSubstr("'dots' is neither"), HasSubstr("did you mean 'dot'")));
  const Outcome outcome = tandem("import dot.safetensors --model dot --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("resized to 9 (bilinear as by Pillow) and cropped to 8"));
  const std::vector<double> right = expected(color, of_imagenet_mean, of_imagenet_std);
  const std::vector<double> found = probabilities();
  ASSERT_EQ(found.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[i], right[i], 1e-6) << i;
}

TEST_F(PublishedWeights, ImportedAreTestedOnGivenDataAndCannotBeResumed) {
  desk_.draw_two_classes("images");
  Arrays arrays = dot_arrays();
  arrays["fc.weight"] = {{2, 2}, {1, 2, 3, 4}};
  arrays["fc.bias"] = {{2}, {1, 2}};
  write(arrays);
  configure({{"num_classes", 2}, {"pretrained_cfg", {{"num_classes", 2}}}});
  desk_.write("names.txt", "blue\nred\n");
  ASSERT_EQ(tandem("import timm --classes names.txt --out imported").code, 0);
  EXPECT_THAT(refusal("test --run imported"),
              HasSubstr("run 'imported' was imported and has no data of its own: name them with "
                        "--data FOLDER"));
  for (const char* data : {"", " --data images"}) {
    EXPECT_THAT(refusal(std::string("train --resume --out imported") + data),
                HasSubstr("nothing to resume; train a new run from its weights: tandem train "
                          "--weights imported --data FOLDER"));
  }
  const Outcome outcome = tandem("test --run imported --data images");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("imported/report.html shows this test"));
  const auto page = test::page_data(desk_.read("imported/report.html"));
  EXPECT_TRUE(page.at("source").is_null());
  EXPECT_EQ(page.at("classes"), 2);
  EXPECT_THAT(page.at("tests").at(0).at("judged").get<std::string>(), HasSubstr("of 'images'"));
  EXPECT_TRUE(page.at("curves").empty());
  EXPECT_THAT(refusal("compare imported imported"),
              HasSubstr("run 'imported' was imported and has not been trained, so it has no "
                        "metrics to compare"));
}

TEST_F(PublishedWeights, ThatLackAnArrayAreRefused) {
  Arrays arrays = dot_arrays();
  arrays.erase("fc.bias");
  write(arrays);
  EXPECT_THAT(refusal("import timm --out run"),
              AllOf(HasSubstr("it has 1 arrays for layer 'fc'"), HasSubstr("needs 2")));
  arrays.erase("fc.weight");
  write(arrays);
  EXPECT_THAT(refusal("import timm --out run"), HasSubstr("has no weights for fc of net 'dot'"));
}

TEST_F(PublishedWeights, OfAnotherShapeAreRefused) {
  Arrays arrays = dot_arrays();
  arrays["conv1.weight"] = {{3, 2, 1, 1}, arrays["conv1.weight"].values};
  write(arrays);
  EXPECT_THAT(refusal("import timm --out run"),
              AllOf(HasSubstr("'conv1.weight' is 3x2x1x1"), HasSubstr("needs 2x3x1x1")));
}

TEST_F(PublishedWeights, OfAnArchitectureWithoutANetAreRefused) {
  configure({{"architecture", "resnet18d"}});
  EXPECT_THAT(refusal("import timm --out run"),
              AllOf(HasSubstr("architecture 'resnet18d'"), HasSubstr("did you mean 'resnet18'"),
                    HasSubstr("vgg19_bn")));
}

TEST_F(PublishedWeights, InAFolderThatTimmHasNotWrittenAreRefused) {
  configure({{"pretrained_cfg", {{"std", {0.5, 0, 0.5}}}}});
  EXPECT_THAT(refusal("import timm --out run"),
              AllOf(HasSubstr("timm/config.json'"), HasSubstr("std")));
  desk_.write("timm/config.json", "{");
  EXPECT_THAT(refusal("import timm --out run"), HasSubstr("is not a config.json of timm's"));
  desk_.write("timm/config.json",
              "{\"architecture\": " + std::string(400'000, '[') + std::string(400'000, ']') + "}");
  EXPECT_THAT(refusal("import timm --out run"), HasSubstr("nested more than 64 deep"));
  fs::remove(desk_ / "timm/config.json");
  EXPECT_THAT(refusal("import timm --out run"), HasSubstr("without config.json"));
}

TEST_F(PublishedWeights, WithOtherClassesAndClassNamesAreImportedSo) {
  Arrays arrays = dot_arrays();
  arrays["fc.weight"] = {{2, 2}, {1, 2, 3, 4}};
  arrays["fc.bias"] = {{2}, {1, 2}};
  write(arrays);
  configure({{"num_classes", 2}, {"pretrained_cfg", {{"num_classes", 2}}}});
  desk_.write("names.txt", "cat\ndog\n");
  const Outcome outcome = tandem("import timm --classes names.txt --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(tandem("predict --run run picture.ppm").output,
              AllOf(HasSubstr("cat "), HasSubstr("dog ")));
  fs::remove_all(desk_ / "run");
  desk_.write("names.txt", "cat\n");
  EXPECT_THAT(refusal("import timm --classes names.txt --out run"),
              HasSubstr("has 1 names, the net has 2 classes"));
}

TEST_F(PublishedWeights, WithAClassifierOfTheirOwnHaveItsNumberOfClasses) {
  Arrays arrays = dot_arrays();
  arrays["fc.weight"] = {{2, 2}, {1, 2, 3, 4}};
  arrays["fc.bias"] = {{2}, {1, 2}};
  write(arrays);
  configure({{"num_classes", nullptr}, {"pretrained_cfg", {{"num_classes", nullptr}}}});
  desk_.write("names.txt", "cat\ndog\n");
  for (const char* weights : {"timm", "dot.safetensors --model dot"}) {
    const std::string import = std::string("import ") + weights + " --out run --classes names.txt";
    const Outcome outcome = tandem(import);
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr("'fc' has 2 outputs in the file"));
    EXPECT_THAT(tandem("predict --run run picture.ppm").output,
                AllOf(HasSubstr("cat "), HasSubstr("dog ")));
    fs::remove_all(desk_ / "run");
  }
  desk_.write("names.txt", "cat\ndog\nbird\n");
  EXPECT_THAT(refusal("import dot.safetensors --model dot --classes names.txt --out run"),
              HasSubstr("has 3 names, the net has 2 classes"));
}

TEST_F(PublishedWeights, AreFineTunedWithTheirPreparation) {
  desk_.draw_two_classes("images");
  const std::string train = "train --data images --weights timm --freeze 'conv1,bn1*' --steps 2 ";
  const Outcome outcome = tandem(train + "--out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("license apache-2.0"), HasSubstr("mean 0.5 0.4 0.3"),
                                    HasSubstr("layers are frozen")));
  const json record = json::parse(desk_.read("run/run.json")).at("data_parameters");
  EXPECT_EQ(record.at("mean"), "76.5,102,127.5");
  EXPECT_EQ(record.at("resize"), "10");
  EXPECT_EQ(record.at("color"), "rgb");
  EXPECT_EQ(record.at("interpolation"), "bicubic");
  EXPECT_EQ(record.at("resampling"), "pillow");
  fs::remove_all(desk_ / "run");
  EXPECT_THAT(refusal(train + "--net resnet18 --out run"),
              AllOf(HasSubstr("--model resnet18"), HasSubstr("of architecture dot")));
}

TEST_F(PublishedWeights, BesideTheirConfigNeedNoModelAndTakeNoOther) {
  const Outcome outcome = tandem("import timm/model.safetensors --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("mean 0.5 0.4 0.3"));
  fs::remove_all(desk_ / "run");
  EXPECT_EQ(tandem("import timm --model dot --out run").code, 0);
  fs::remove_all(desk_ / "run");
  EXPECT_THAT(refusal("import timm --model resnet18 --out run"),
              HasSubstr("--model resnet18, but weights 'timm' are of architecture dot: leave"));
}

TEST_F(PublishedWeights, HaveNetsThatAreModelsWithoutThem) {
  desk_.draw_two_classes("images");
  desk_.write("models/pretrained/dot_of_timm.names", "net dot\neps 0.5\n");
  for (const char* model : {"dot", "dot_of_timm"}) {
    const Outcome outcome =
        tandem(std::string("train --data images --steps 1 --out run --model ") + model);
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_THAT(desk_.read("run/net.prototxt"), HasSubstr("name: \"fc_2\""));
    fs::remove_all(desk_ / "run");
  }
  EXPECT_THAT(tandem("net dot_of_timm").output, HasSubstr("conv1"));
  const Outcome models = tandem("models");
  EXPECT_THAT(models.output, AllOf(HasSubstr("\ndot *"), HasSubstr("\ndot_of_timm *"),
                                   HasSubstr("*: as torchvision or timm has it")));
  EXPECT_THAT(models.output, Not(HasSubstr("resnet18 *")));
  EXPECT_EQ(tandem("net dot152").errors.find("did you mean"), std::string::npos);
  EXPECT_THAT(tandem("net dots").errors, HasSubstr("did you mean 'dot'"));
}

TEST_F(PublishedWeights, AreReadIntoANetOfAPrototxtFileByThePyTorchNamesOfItsLayers) {
  desk_.write("own.prototxt", net_text);
  const Outcome outcome = tandem("import dot.safetensors --model own.prototxt --out run");
  EXPECT_EQ(outcome.code, 1);  // PyTorch has no layer "std"
  EXPECT_THAT(outcome.errors, HasSubstr("has no weights for std of net 'dot'"));
  desk_.draw_two_classes("images");
  const Outcome trained = tandem(
      "train --data images --model own.prototxt --adapt-classes --weights dot.safetensors "
      "--steps 1 --out trained");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  EXPECT_THAT(trained.output, AllOf(HasSubstr("weights of 2 layers from dot.safetensors"),
                                    HasSubstr("with initial values: std, fc_2")));
}

TEST_F(PublishedWeights, InShardsAreReadByTheirIndex) {
  Arrays one = dot_arrays(), two;
  two.insert(one.extract("fc.weight"));
  desk_.write("timm/1.safetensors", safetensors(one));
  desk_.write("timm/2.safetensors", safetensors(two));
  fs::remove(desk_ / "timm/model.safetensors");
  json map;
  for (const auto& [name, array] : one) map[name] = "1.safetensors";
  map["fc.weight"] = "2.safetensors";
  desk_.write("timm/model.safetensors.index.json", json{{"weight_map", map}}.dump());
  ASSERT_EQ(tandem("import timm --out run").code, 0);
  const std::vector<double> right = expected(color, {0.5, 0.4, 0.3}, {0.25, 0.5, 0.2});
  const std::vector<double> found = probabilities();
  ASSERT_EQ(found.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[i], right[i], 1e-6) << i;
}

TEST_F(PublishedWeights, UnderOtherNamesAreReadByTheFileOfTheirArchitecture) {
  Arrays arrays = dot_arrays();
  for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
    auto found = arrays.extract(std::string("bn1.") + part);
    found.key() = std::string("stem.norm.") + part;
    arrays.insert(std::move(found));
  }
  write(arrays);
  configure({{"architecture", "dot_of_timm.a1"}});
  desk_.write("models/pretrained/dot_of_timm.names", "# timm's\nnet dot\nstem.norm.*  bn1.*\n");
  const Outcome outcome = tandem("import timm --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const std::vector<double> right = expected(color, {0.5, 0.4, 0.3}, {0.25, 0.5, 0.2});
  const std::vector<double> found = probabilities();
  ASSERT_EQ(found.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[i], right[i], 1e-6) << i;
  fs::remove_all(desk_ / "run");
  desk_.write("models/pretrained/dot_of_timm.names", "net dot\neps 0.5\nstem.norm.*  bn1.*\n");
  ASSERT_EQ(tandem("import timm --out run").code, 0);
  const std::vector<double> by_eps = expected(color, {0.5, 0.4, 0.3}, {0.25, 0.5, 0.2}, 0.5);
  const std::vector<double> found_by_eps = probabilities();
  ASSERT_EQ(found_by_eps.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found_by_eps[i], by_eps[i], 1e-6) << i;
  fs::remove_all(desk_ / "run");
  desk_.write("models/pretrained/dot_of_timm.names", "net dot\neps large\n");
  EXPECT_THAT(refusal("import timm --out run"), HasSubstr("dot_of_timm.names:2: eps large: what"));
  desk_.write("models/pretrained/dot_of_timm.names", "net dot\nstem.norm.* bn1.* more\n");
  EXPECT_THAT(refusal("import timm --out run"), HasSubstr("dot_of_timm.names:2: a rule is two"));
}

TEST_F(PublishedWeights, OfAFileAloneHaveThePreparationOfTheirArchitecture) {
  desk_.write("models/pretrained/dot.names", "resize 10\ninterpolation bicubic\n");
  const Outcome outcome = tandem("import dot.safetensors --model dot --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("resized to 10 (bicubic as by Pillow) and cropped to 8"));
  fs::remove_all(desk_ / "run");
  desk_.write("models/pretrained/dot.names", "resize 8\n");
  const Outcome whole = tandem("import dot.safetensors --model dot --out run");
  EXPECT_THAT(whole.output, HasSubstr("resized to 8 (bilinear as by Pillow) and cropped to 8"))
      << whole.errors;
  fs::remove_all(desk_ / "run");
  desk_.write("models/pretrained/dot.names", "resize 7\n");
  EXPECT_THAT(refusal("import dot.safetensors --model dot --out run"),
              HasSubstr("dot.names: resize 7 is less than the side of the net's images, 8"));
  desk_.write("models/pretrained/dot.names", "resize large\n");
  EXPECT_THAT(refusal("import dot.safetensors --model dot --out run"),
              HasSubstr("dot.names:1: resize large: the shorter side in pixels"));
}

TEST_F(PublishedWeights, OfARunAreFineTunedWithItsNetAndItsPreparation) {
  desk_.draw_two_classes("images");
  ASSERT_EQ(tandem("import timm --out imported").code, 0);
  const std::string train = "train --data images --weights imported --steps 2 ";
  const Outcome outcome = tandem(train + "--freeze 'conv1,bn1*' --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("net 'dot' and weights of run 'imported'"),
                    HasSubstr("resized to 10 (bicubic as by Pillow) and cropped to 8"),
                    HasSubstr("layers are frozen")));
  const json record = json::parse(desk_.read("run/run.json")).at("data_parameters");
  EXPECT_EQ(record.at("mean"), "76.5,102,127.5");
  EXPECT_EQ(record.at("resize"), "10");
  EXPECT_EQ(record.at("color"), "rgb");
  EXPECT_EQ(record.at("interpolation"), "bicubic");
  EXPECT_EQ(record.at("resampling"), "pillow");
  fs::remove_all(desk_ / "run");
  EXPECT_THAT(refusal(train + "--net resnet18 --out run"),
              AllOf(HasSubstr("is a run, which has a net of its own: leave --net out"),
                    HasSubstr("imported/best.safetensors")));
  EXPECT_THAT(refusal("import imported --out run"), HasSubstr("is a run folder already"));
}

TEST_F(PublishedWeights, WhoseConfigHasAFieldOutOfRangeAreRefusedByFieldAndValue) {
  struct Bad {
    const char *field, *value;
  };
  for (const Bad& bad : std::vector<Bad>{{"mean", "\"grey\""},
                                         {"mean", "[1e300,0.0,0.0]"},
                                         {"mean", "[0.5,0.5,0.5,0.5]"},
                                         {"std", "[0.5,1e-300,0.5]"},
                                         {"crop_pct", "1e-300"},
                                         {"crop_pct", "0.0001"},
                                         {"input_size", "[3,8,12]"},
                                         {"input_size", "[3,8.9,8.9]"},
                                         {"input_size", "[1,8,8]"},
                                         {"crop_mode", "\"random\""},
                                         {"license", "\"a\\u001b[31m\""},
                                         {"num_classes", "-5"},
                                         {"num_classes", "2147483647"}}) {
    configure({{"pretrained_cfg", {{bad.field, json::parse(bad.value)}}}});
    EXPECT_THAT(refusal("import timm --out run"),
                AllOf(HasSubstr("timm/config.json'"), HasSubstr(std::string("'") + bad.field),
                      HasSubstr(json::parse(bad.value).dump()), HasSubstr("it must be")));
  }
  configure({{"num_classes", 5000000}, {"pretrained_cfg", {{"num_classes", 5000000}}}});
  EXPECT_THAT(refusal("import timm --out run"),
              AllOf(HasSubstr("'num_classes' 5000000"), HasSubstr("has 3 outputs")));
}

TEST_F(PublishedWeights, WhoseConfigMakesAnotherNetAreRefused) {
  configure({{"global_pool", "max"}});
  EXPECT_THAT(refusal("import timm --out run"),
              AllOf(HasSubstr("'global_pool' \"max\""), HasSubstr("other pooling")));
  configure({{"global_pool", "avg"}, {"model_args", {{"act_layer", "silu"}}}});
  EXPECT_THAT(refusal("import timm --out run"),
              AllOf(HasSubstr("'model_args'"), HasSubstr("without 'act_layer'")));
  configure({{"global_pool", "avg"}, {"model_args", {{"num_classes", 3}, {"drop_rate", 0.1}}}});
  EXPECT_EQ(tandem("import timm --out run").code, 0);
}

TEST_F(PublishedWeights, WithClassNamesThatTrainRefusesAreRefused) {
  desk_.write("names.txt", "cat\ndog\ncat\n");
  EXPECT_THAT(refusal("import timm --classes names.txt --out run"),
              HasSubstr("'cat' is there twice"));
  desk_.write("names.txt", "cat\ndog\n\xff\n");
  EXPECT_THAT(refusal("import timm --classes names.txt --out run"), HasSubstr("not UTF-8"));
  desk_.write("names.txt", "cat\ndog\na\x1b[31m\n");
  EXPECT_THAT(refusal("import timm --classes names.txt --out run"),
              HasSubstr("a control character"));
}

TEST_F(PublishedWeights, OfWhichTwoArraysHaveOneNameAreRefused) {
  desk_.write("models/pretrained/dot.names", "other.bias fc.bias\n");
  Arrays arrays = dot_arrays();
  arrays["other.bias"] = {{3}, {1, 2, 3}};
  write(arrays);
  EXPECT_THAT(refusal("import timm --out run"), HasSubstr("two arrays for 'fc.bias'"));
}

TEST_F(PublishedWeights, OfWhichTheDiskTakesTooLittleLeaveNoRun) {
  const std::string text =
      desk_.refusal("import timm --out run", "trap '' XFSZ; ulimit -f 1; " + models());
  EXPECT_FALSE(fs::exists(desk_ / "run")) << text;
}

// The probabilities of a picture's classes.
std::vector<double> class_probabilities(const Desk& desk, const std::string& run) {
  std::vector<double> found;
  const Outcome predicted = desk.tandem("predict --run " + run + " images/val/red/1.ppm --json");
  EXPECT_EQ(predicted.code, 0) << predicted.errors;
  const json images = json::parse(predicted.output);
  for (const json& score : images.at(0).at("scores")) found.push_back(score.at("probability"));
  return found;
}

TEST(CaffeWeights, AreImportedWithTheTransformOfTheirNet) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --data images --net tiny.prototxt --steps 2 --out base").code, 0);
  ASSERT_EQ(desk.tandem("export --run base base.caffemodel").code, 0);
  const Outcome outcome = desk.tandem("import base.caffemodel --net tiny.prototxt --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              HasSubstr("images: b,g,r, resized to 9 (bilinear) and cropped to 8, mean 128 "
                        "(b,g,r), scale 0.01"));
  const json record = json::parse(desk.read("run/run.json")).at("data_parameters");
  EXPECT_EQ(record.at("mean"), "128");
  EXPECT_EQ(record.at("scale"), "0.01");
  EXPECT_EQ(class_probabilities(desk, "run"), class_probabilities(desk, "base"));
}

TEST(CaffeWeights, AreImportedAsTheRunInWhoseFolderTheNetIsPreparesImages) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --data images --net tiny.prototxt --steps 2 --out base "
                        "--data-option mean=90,100,110 --data-option resize=12 "
                        "--data-option color=rgb")
                .code,
            0);
  ASSERT_EQ(desk.tandem("export --run base base.caffemodel").code, 0);
  const Outcome outcome = desk.tandem("import base.caffemodel --net base/net.prototxt --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              HasSubstr("images: r,g,b, resized to 12 (bilinear) and cropped to 8, mean 90,100,110 "
                        "(b,g,r), scale 0.01 (of the run in whose folder the net is)"));
  EXPECT_EQ(class_probabilities(desk, "run"), class_probabilities(desk, "base"));
}

TEST(CaffeWeights, OfANetWithoutAMeanAreImportedWithALineThatSaysSo) {
  const Desk desk;
  desk.draw_two_classes("images");
  std::string net = test::tiny_net();
  const std::string mean = "mean_value: 128";
  ASSERT_NE(net.find(mean), std::string::npos) << net;
  net.erase(net.find(mean), mean.size());
  desk.write("plain.prototxt", net);
  ASSERT_EQ(desk.tandem("train --data images --net plain.prototxt --steps 2 --out base").code, 0);
  const Outcome outcome =
      desk.tandem("import base/last.safetensors --net plain.prototxt --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("it has no mean_value, so no mean is subtracted"));
}

TEST(CaffeWeights, OfADeployNetAreImportedWithoutALoss) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --data images --net tiny.prototxt --steps 2 --out base").code, 0);
  const std::string tiny = test::tiny_net();
  const size_t begin = tiny.find("layer {\n  name: \"conv1\""),
               end = tiny.find("layer {\n  name: \"accuracy\"");
  desk.write("deploy.prototxt",
             "name: \"tiny\"\nlayer {\n  name: \"data\" type: \"Input\" top: \"data\"\n"
             "  input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } }\n}\n" +
                 tiny.substr(begin, end - begin) +
                 "layer { name: \"prob\" type: \"Softmax\" bottom: \"score\" top: \"prob\" }\n");
  const Outcome outcome =
      desk.tandem("import base/last.safetensors --net deploy.prototxt --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("unknown preparation"));
  EXPECT_EQ(desk.tandem("predict --run run images/val/red/1.ppm").code, 0);
}

}  // namespace
}  // namespace tandem
