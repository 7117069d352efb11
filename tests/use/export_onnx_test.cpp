// An exported net gives the scores of the net here, in another library: every built-in model, every
// layer with an ONNX form, and the steps from a picture to the net's input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/base/numbers/random.h"
#include "core/formats/onnx/export.h"
#include "core/model/passes/build_net.h"
#include "core/report/findings.h"
#include "core/run/setup/setup_data.h"
#include "core/session/net_runner.h"
#include "core/use/loaded_run.h"
#include "include/tandem/predict.h"
#include "tests/support/folders.h"
#include "tests/support/mean_image_file.h"
#include "tests/support/run_support.h"
#include "tests/use/opencv_dnn.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Both sides compute in float32, in different orders.
constexpr double tolerance = 1e-4;  // of the largest score

// The largest difference of OpenCV's scores from those of the net here, as a share of the largest.
double difference(const std::vector<float>& theirs, const std::vector<float>& ours) {
  EXPECT_EQ(theirs.size(), ours.size());
  if (theirs.size() != ours.size()) return std::numeric_limits<double>::infinity();
  double largest = 0, score = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double away = std::abs(static_cast<double>(ours[i]) - theirs[i]);
    largest = std::max(largest, std::isnan(away) ? std::numeric_limits<double>::infinity() : away);
    score = std::max(score, std::abs(static_cast<double>(ours[i])));
  }
  EXPECT_GT(score, 0);
  return largest / score;
}

// A net with weights as after some training: statistics that are not the initial ones.
class Exported {
 public:
  Exported(const NetDefinition& definition, const Shape& data, int64_t batch = 2)
      : registry_(Registry::with_defaults()), batch_(batch) {
    SessionOptions options;
    options.batch = batch;
    options.data = data;
    options.training = false;
    session_.emplace(registry_, definition, options);
    session_->set_initial_weights(3);
    NetOptions plain;
    plain.phase = TANDEM_TEST;
    plain.data = data;
    plain.device_kind = "";
    net_ = build_net(definition, registry_, plain);
    weights_ = session_->weights();
    change_weights();
    session_->set_weights(weights_);
    Random random(5, 1);
    Shape row = net_.tensor(net_.data).shape;
    rows_.resize(static_cast<size_t>(element_count(row) / row.n * batch));
    for (float& value : rows_) value = static_cast<float>(random.uniform()) * 4 - 2;
  }

  [[nodiscard]] OnnxModel model(const OnnxOptions& options = {}) const {
    return make_onnx(net_, weights_, {}, options);
  }

  // Of the scores that OpenCV gives.
  double difference(const OnnxModel& model) {
    const TempFolder folder;
    const auto file = folder.write("net.onnx", model.bytes);
    Shape input = model.input;
    input.n = batch_;
    std::vector<float> ours(static_cast<size_t>(batch_ * model.classes));
    NetRunner(*session_).run(rows_.data(), batch_, ours.data());
    return test::difference(run_by_opencv(file, rows_, input), ours);
  }

 private:
  void change_weights() {
    Random random(4, 1);
    for (const WeightArray& array : net_.weights) {
      if (array.layer < 0) continue;  // of a layer that tests nothing
      const std::string type = net_.layer(array.layer).type->name;
      float* values = weights_.data() + array.offset;
      const bool is_norm = type == "BatchNorm" || type == "BatchNormScale";
      // The sums of mean and variance are divided by a factor that is not 1.
      const bool is_factor = is_norm && array.count == 1 && array.name.ends_with("scale_factor");
      const bool is_variance = is_norm && array.name.ends_with("variance");
      if (!is_norm && type != "Scale" && array.fan_in > 1) continue;
      for (int64_t i = 0; i < array.count; ++i) {
        const auto drawn = static_cast<float>(random.uniform());
        values[i] = is_factor ? 2.0F : is_variance ? 1 + 2 * drawn : values[i] + drawn - 0.5F;
      }
    }
  }

  Registry registry_;
  int64_t batch_;
  std::optional<Session> session_;
  Net net_;
  std::vector<float> weights_, rows_;
};

class Onnx : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* reason = why_no_opencv_dnn()) GTEST_SKIP() << reason;
  }
};

// ---- the built-in models

struct Model {
  std::string name;
  Shape data;  // as small as the net allows
};

class BuiltInModel : public Onnx, public testing::WithParamInterface<Model> {};

TEST_P(BuiltInModel, GivesTheSameScoresInOpenCV) {
  const auto file = source_folder() / "examples/models" / (GetParam().name + ".prototxt");
  Exported exported(read_net(file), GetParam().data);
  EXPECT_LE(exported.difference(exported.model()), tolerance);
  OnnxOptions folded;
  folded.fold_batch_norm = true;
  EXPECT_LE(exported.difference(exported.model(folded)), tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Models, BuiltInModel,
    testing::Values(Model{"alexnet", {1, 3, 67, 67}}, Model{"caffenet", {1, 3, 67, 67}},
                    Model{"cifar10_full", {1, 3, 32, 32}}, Model{"cifar10_quick", {1, 3, 32, 32}},
                    Model{"googlenet", {1, 3, 96, 96}}, Model{"lenet", {1, 1, 28, 28}},
                    Model{"mobilenet", {1, 3, 64, 64}}, Model{"resnet18", {1, 3, 64, 64}},
                    Model{"resnet50", {1, 3, 64, 64}}, Model{"shapes_quick", {1, 3, 57, 57}},
                    Model{"speech_dnn", {1, 440, 1, 1}}, Model{"squeezenet", {1, 3, 64, 64}},
                    Model{"vgg16", {1, 3, 32, 32}}),
    [](const auto& info) { return info.param.name; });

TEST(BuiltInModels, AreAllExported) {
  std::set<std::string> models;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_folder() / "examples/models")) {
    const std::string name = entry.path().stem().string();
    // The folder `pretrained` has the nets of published weights.
    if (entry.is_regular_file() && !name.ends_with("_solver")) models.insert(name);
  }
  EXPECT_EQ(models.size(), 13U) << "add the new model to the test above";
}

// ---- layers

struct LayerCase {
  std::string name, layers;  // from "data" (2x3x13x11) to "last"
};

NetDefinition net_of(const std::string& layers) {
  return read_net_text(
      "name: 'one' layer { name: 'data' type: 'Data' top: 'data' top: 'label' }\n" + layers +
      "\nlayer { name: 'score' type: 'InnerProduct' bottom: 'last' top: 'score' "
      "inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } }\n"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'score' bottom: 'label' top: 'loss' }");
}

std::string net_of_layer(const std::string& type, const std::string& more = "") {
  return "layer { name: 'x' type: '" + type + "' bottom: 'data' top: 'last' " + more + " }";
}

std::string pooling(const std::string& fields) {
  return net_of_layer("Pooling", "pooling_param { " + fields + " }");
}

class LayerForm : public Onnx, public testing::WithParamInterface<LayerCase> {};

TEST_P(LayerForm, GivesTheSameScoresInOpenCV) {
  Exported exported(net_of(GetParam().layers), {1, 3, 13, 11});
  EXPECT_LE(exported.difference(exported.model()), tolerance);
}

const std::string convolution_x =
    "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' convolution_param { num_output: "
    "3 kernel_size: 3 pad: 1 weight_filler { type: 'xavier' } } }\n";

INSTANTIATE_TEST_SUITE_P(
    Layers, LayerForm,
    testing::Values(
        LayerCase{"AbsVal", net_of_layer("AbsVal")}, LayerCase{"BNLL", net_of_layer("BNLL")},
        LayerCase{"BatchNorm", net_of_layer("BatchNorm")},
        LayerCase{"BatchNormScale", net_of_layer("BatchNormScale")},
        LayerCase{"Bias", net_of_layer("Bias")},
        LayerCase{"Clip", net_of_layer("Clip", "clip_param { min: -0.5 max: 0.75 }")},
        LayerCase{"ClipOfWideBounds", net_of_layer("Clip", "clip_param { min: -0.5 max: 1e9 }")},
        LayerCase{"ClipOfHugeBounds", net_of_layer("Clip", "clip_param { min: -1e30 max: 1e30 }")},
        LayerCase{"Concat", convolution_x +
                                "layer { name: 'x' type: 'Concat' bottom: 'data' bottom: 'c' "
                                "top: 'last' }"},
        LayerCase{"ConvolutionOfUnequalAxes",
                  net_of_layer("Convolution",
                               "convolution_param { num_output: 6 group: 3 kernel_h: 3 kernel_w: 2 "
                               "stride_h: 2 stride_w: 1 pad_h: 1 pad_w: 0 weight_filler { type: "
                               "'xavier' } }")},
        LayerCase{"DilatedConvolution",
                  net_of_layer("Convolution",
                               "convolution_param { num_output: 4 kernel_size: 3 dilation: 2 "
                               "weight_filler { type: 'xavier' } }")},
        LayerCase{"Crop",
                  "layer { name: 'p' type: 'Pooling' bottom: 'data' top: 'p' pooling_param "
                  "{ kernel_size: 2 stride: 2 } }\nlayer { name: 'x' type: 'Crop' bottom: "
                  "'data' bottom: 'p' top: 'last' crop_param { offset: 2 offset: 3 } }"},
        LayerCase{"Deconvolution",
                  net_of_layer("Deconvolution",
                               "convolution_param { num_output: 4 kernel_size: 4 stride: 2 pad: 1 "
                               "weight_filler { type: 'xavier' } }")},
        LayerCase{"Dropout", net_of_layer("Dropout")}, LayerCase{"ELU", net_of_layer("ELU")},
        LayerCase{"EltwiseSum", convolution_x +
                                    "layer { name: 'x' type: 'Eltwise' bottom: 'data' bottom: 'c' "
                                    "top: 'last' eltwise_param { coeff: 0.5 coeff: -1 } }"},
        LayerCase{"EltwiseProduct",
                  convolution_x + "layer { name: 'x' type: 'Eltwise' bottom: 'data' bottom: 'c' "
                                  "top: 'last' eltwise_param { operation: PROD } }"},
        LayerCase{"EltwiseMaximum",
                  convolution_x + "layer { name: 'x' type: 'Eltwise' bottom: 'data' bottom: 'c' "
                                  "top: 'last' eltwise_param { operation: MAX } }"},
        LayerCase{"Exp", net_of_layer("Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }")},
        LayerCase{"Flatten", net_of_layer("Flatten")},
        LayerCase{"Log",
                  "layer { name: 'a' type: 'AbsVal' bottom: 'data' top: 'a' }\nlayer { "
                  "name: 'x' type: 'Log' bottom: 'a' top: 'last' log_param { base: 3 scale: "
                  "2 shift: 0.5 } }"},
        LayerCase{"LRNAcrossChannels",
                  net_of_layer("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.6 k: 2 }")},
        LayerCase{"LRNWithinAChannel",
                  net_of_layer("LRN",
                               "lrn_param { local_size: 3 alpha: 0.5 beta: 0.6 norm_region: "
                               "WITHIN_CHANNEL }")},
        LayerCase{"PReLU", net_of_layer("PReLU")},
        LayerCase{"MaximumBeyondTheImage", pooling("pool: MAX kernel_size: 3 stride: 2 pad: 1")},
        LayerCase{"MaximumOfRoundedUpWindows", pooling("pool: MAX kernel_size: 2 stride: 2")},
        LayerCase{"AverageInsideThePadding", pooling("pool: AVE kernel_size: 3 stride: 1 pad: 1")},
        LayerCase{"AverageBeyondThePadding", pooling("pool: AVE kernel_size: 4 stride: 3 pad: 1")},
        LayerCase{"AverageOfRoundedUpWindows", pooling("pool: AVE kernel_size: 4 stride: 3")},
        LayerCase{"AverageOfRoundedDownWindows",
                  pooling("pool: AVE kernel_size: 2 stride: 2 round_mode: FLOOR")},
        LayerCase{"GlobalMaximum", pooling("pool: MAX global_pooling: true")},
        LayerCase{"Power",
                  net_of_layer("Power", "power_param { power: 2 scale: 0.5 shift: 0.25 }")},
        LayerCase{"LeakyReLU", net_of_layer("ReLU", "relu_param { negative_slope: 0.1 }")},
        LayerCase{"AverageWithoutPadding",
                  net_of_layer("Pooling",
                               "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 "
                               "count_padding: false }")},
        LayerCase{"MatMul",
                  "layer { name: 'x' type: 'MatMul' bottom: 'data' bottom: 'data' top: 'last' "
                  "matmul_param { transpose_b: true } }"},
        LayerCase{"Pad", net_of_layer("Pad", "pad_param { top: 1 right: 2 value: 0.5 }")},
        LayerCase{"PadMirrored",
                  net_of_layer("Pad", "pad_param { left: 1 bottom: 2 mode: REFLECT }")},
        LayerCase{"SoftmaxOfWidth", net_of_layer("Softmax", "softmax_param { axis: 3 }")},
        LayerCase{"UpsampleNearest", net_of_layer("Upsample")},
        LayerCase{"UpsampleBilinear",
                  net_of_layer("Upsample", "upsample_param { mode: BILINEAR }")},
        LayerCase{"Permute",
                  net_of_layer("Permute",
                               "permute_param { dim: 3 dim: 13 dim: 11 order: 0 order: 2 order: 3 "
                               "order: 1 }")},
        LayerCase{"Reshape", net_of_layer("Reshape",
                                          "reshape_param { shape { dim: 0 dim: 1 dim: 39 "
                                          "dim: -1 } }")},
        LayerCase{"ScaleWithBias", net_of_layer("Scale", "scale_param { bias_term: true }")},
        LayerCase{"ScaleByAnInput",
                  "layer { name: 'p' type: 'Pooling' bottom: 'data' top: 'p' pooling_param "
                  "{ pool: AVE global_pooling: true } }\nlayer { name: 'x' type: 'Scale' bottom: "
                  "'data' bottom: 'p' top: 'last' scale_param { axis: 0 } }"},
        LayerCase{"SiLU", net_of_layer("SiLU")}, LayerCase{"Sigmoid", net_of_layer("Sigmoid")},
        LayerCase{"Slice",
                  "layer { name: 'x' type: 'Slice' bottom: 'data' top: 'a' top: 'b' slice_param { "
                  "slice_point: 1 } }\nlayer { name: 'y' type: 'Concat' bottom: 'b' bottom: 'a' "
                  "top: 'last' }"},
        LayerCase{"Softmax", net_of_layer("Softmax")},
        LayerCase{"Swish", net_of_layer("Swish", "swish_param { beta: 1.5 }")},
        LayerCase{"TanH", net_of_layer("TanH")}, LayerCase{"GELU", net_of_layer("GELU")},
        LayerCase{"HardSigmoid", net_of_layer("HardSigmoid")},
        LayerCase{"HardSwish", net_of_layer("HardSwish")},
        LayerCase{"GELUByTanh", net_of_layer("GELU", "gelu_param { approximate: tanh }")},
        LayerCase{"Tile", net_of_layer("Tile", "tile_param { tiles: 2 }")}),
    [](const auto& info) { return info.param.name; });

// ReduceSum has its axes as an input from opset 13 on, the others from opset 18 on.
TEST(LayerForms, ReductionsHaveTheirAxesWhereTheOpsetHasThem) {
  for (const char* operation : {"SUM", "ASUM", "SUMSQ", "MEAN"}) {
    const std::string block = fmt::format("reduction_param {{ operation: {} axis: 2 }}", operation);
    const Exported exported(net_of(net_of_layer("Reduction", block)), {1, 3, 13, 11});
    for (const int64_t opset : {13, 17, 18, 21}) {
      OnnxOptions options;
      options.opset = opset;
      const std::string bytes = exported.model(options).bytes;
      // The name of an attribute, as protobuf writes it.
      const bool is_attribute = bytes.find(
                                    "\n\x04"
                                    "axes") != std::string::npos;
      EXPECT_EQ(is_attribute, opset < 18 && operation != std::string_view("SUM"))
          << operation << ", opset " << opset;
    }
  }
}

TEST(LayerForms, ALayerWithoutOneIsNamedWithItsTypeAndLine) {
  const Exported exported(net_of("\n\n" + net_of_layer("MVN")), {1, 3, 13, 11});
  std::string message;
  try {
    (void)exported.model();
  } catch (const Error& failure) {
    message = failure.what();
  }
  EXPECT_THAT(message, HasSubstr("layer 'x' (MVN): this type of layer has no ONNX form"));
  EXPECT_THAT(message, HasSubstr(":4"));
}

TEST_F(Onnx, FoldingLeavesNoBatchNormAfterAConvolution) {
  Exported exported(
      net_of(convolution_x + "layer { name: 'n' type: 'BatchNorm' bottom: 'c' top: 'n' }\nlayer { "
                             "name: 'x' type: 'Scale' bottom: 'n' top: 'last' scale_param { "
                             "bias_term: true } }"),
      {1, 3, 13, 11});
  EXPECT_THAT(exported.model().bytes, HasSubstr("BatchNormalization"));
  OnnxOptions options;
  options.fold_batch_norm = true;
  const OnnxModel model = exported.model(options);
  EXPECT_THAT(model.bytes, testing::Not(HasSubstr("BatchNormalization")));
  EXPECT_THAT(model.folded, testing::ElementsAre("n"));
  EXPECT_LE(exported.difference(model), tolerance);
}

TEST_F(Onnx, FoldsABatchNormScale) {
  Exported exported(
      net_of(convolution_x + "layer { name: 'n' type: 'BatchNorm' bottom: 'c' top: 'last' "
                             "batch_norm_param { scale_bias: true } }"),
      {1, 3, 13, 11});
  OnnxOptions options;
  options.fold_batch_norm = true;
  const OnnxModel model = exported.model(options);
  EXPECT_THAT(model.bytes, testing::Not(HasSubstr("BatchNormalization")));
  EXPECT_THAT(model.folded, testing::ElementsAre("n"));
  EXPECT_LE(exported.difference(model), tolerance);
}

// ---- a run

class ExportedFile : public Runs {
 protected:
  static std::filesystem::path trained(const std::map<std::string, std::string>& parameters,
                                       const std::string& pixels = "floats") {
    TrainOptions o = options(2);
    o.data_parameters = parameters;
    o.pixels = pixels;
    Observer quiet;
    return train(o, quiet).run;
  }
};

class ExportedRun : public ExportedFile {
 protected:
  void SetUp() override {
    ExportedFile::SetUp();
    if (IsSkipped()) return;
    if (const char* reason = why_no_opencv_dnn()) GTEST_SKIP() << reason;
  }
};

constexpr int64_t checked_rows = 8;

// Evenly spaced samples of a run's validation data, as `record` describes them.
std::vector<float> validation_rows(LoadedRun& run, const RunRecord& record, bool rounds) {
  const auto dataset = open_dataset(run.registry, run.folder.net(), record, "", "val", TANDEM_TEST);
  EXPECT_GE(dataset->size(), checked_rows);
  const int64_t size = element_count(dataset->shape());
  std::vector<float> rows(static_cast<size_t>(checked_rows * size));
  for (int64_t i = 0; i < checked_rows; ++i) {
    std::string reason;
    EXPECT_EQ(read_row(*dataset, i * dataset->size() / checked_rows, rounds, rows.data() + i * size,
                       &reason),
              SampleStatus::good)
        << reason;
  }
  return rows;
}

// Whole numbers, R,G,B in planes, of this size.
std::vector<float> validation_pictures(LoadedRun& run, const Shape& size) {
  RunRecord plain = run.record;
  plain.data = size;
  for (const char* name : {"mean", "mean_image", "scale", "fit", "resize", "resize_width",
                           "interpolation", "resampling"}) {
    plain.data_parameters.erase(name);
  }
  plain.data_parameters["color"] = "rgb";
  std::vector<float> pictures = validation_rows(run, plain, false);
  for (float& value : pictures) value = std::clamp(std::nearbyint(value), 0.0F, 255.0F);
  return pictures;
}

// The scores of `tandem predict` for pictures in planes.
std::vector<float> predicted(const std::filesystem::path& run, const std::vector<float>& pictures,
                             const Shape& size) {
  const int64_t plane = size.h * size.w;
  std::vector<uint8_t> bytes(pictures.size());
  for (int64_t i = 0; i < static_cast<int64_t>(bytes.size()); ++i) {
    const int64_t picture = i / (3 * plane), pixel = i / 3 % plane, channel = i % 3;
    bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(
        pictures[static_cast<size_t>((picture * 3 + channel) * plane + pixel)]);
  }
  std::vector<Picture> given;
  for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(3 * plane)) {
    given.push_back({bytes.data() + at, static_cast<size_t>(3 * plane), size.h, size.w, 3});
  }
  Predictor predictor(run);
  std::vector<float> scores(given.size() * static_cast<size_t>(predictor.class_count()));
  std::vector<std::string> errors;
  predictor.scores(given, scores.data(), &errors);
  EXPECT_THAT(errors, testing::Each(testing::IsEmpty()));
  return scores;
}

// Of OpenCV's scores of all rows together, and of the first one alone.
void expect_scores(const std::filesystem::path& file, const std::vector<float>& rows, Shape input,
                   const std::vector<float>& ours, double most) {
  for (const int64_t count : {checked_rows, int64_t{1}}) {
    input.n = count;
    const std::vector<float> first(ours.begin(), ours.begin() + count * 3);
    EXPECT_LE(difference(run_by_opencv(file, rows, input), first), most) << count;
  }
}

TEST_F(ExportedRun, GivesTheScoresOfTheNetOnTheRunsData) {
  const auto folder = trained({{"resize", "22"}, {"scale", "0.02"}});
  for (const bool softmax : {false, true}) {
    const TempFolder files;
    ExportOptions o;
    o.run = folder;
    o.file = files / "net.onnx";
    o.softmax = softmax;
    (void)export_run(o);
    Registry registry = Registry::with_defaults();
    LoadedRun run(registry, folder, "cpu", "best");
    run.open(checked_rows, "float32", PixelForm::floats, {});
    const std::vector<float> rows = validation_rows(run, run.record, run.rounds_pixels());
    std::vector<float> ours(checked_rows * 3);
    NetRunner(*run.session).run(rows.data(), checked_rows, ours.data());
    for (size_t i = 0; softmax && i < ours.size(); i += 3) {
      const std::vector<double> p = probabilities(ours.data() + i, 3, false);
      std::copy(p.begin(), p.end(), ours.begin() + static_cast<std::ptrdiff_t>(i));
    }
    expect_scores(o.file, rows, run.record.data, ours, tolerance);
  }
}

struct PictureCase {
  std::string name;
  std::map<std::string, std::string> parameters;
  std::string pixels = "floats";
  int64_t height = 31, width = 45;
};

class PreparedPictures : public ExportedRun, public testing::WithParamInterface<PictureCase> {};

// The model of a run that prepares pictures itself.
TEST_P(PreparedPictures, InsideTheModelGiveThePredictionsOfTheRun) {
  const PictureCase& c = GetParam();
  const TempFolder folder;
  std::map<std::string, std::string> parameters = c.parameters;
  if (parameters.contains("mean_image")) {
    std::vector<float> means(3 * 22 * 22);
    for (size_t i = 0; i < means.size(); ++i) means[i] = static_cast<float>(60 + i % 97);
    parameters["mean_image"] =
        folder.write("mean.binaryproto", mean_image_file(3, 22, 22, means)).string();
  }
  const auto run = trained(parameters, c.pixels);
  ExportOptions export_options;
  export_options.run = run;
  export_options.file = folder / "net.onnx";
  export_options.softmax = true;
  export_options.picture_height = c.height;
  export_options.picture_width = c.width;
  (void)export_run(export_options);

  // Of pixels that are nearly half way between two bytes either may be taken.
  const bool rounds = c.pixels == "bytes";
  const Shape size{1, 3, c.height, c.width};
  Registry registry = Registry::with_defaults();
  LoadedRun loaded(registry, run, "cpu", "best");
  const std::vector<float> pictures = validation_pictures(loaded, size);
  expect_scores(export_options.file, pictures, size, predicted(run, pictures, size),
                rounds ? 1e-3 : tolerance);

  Random random(9, 1);
  const int64_t plane = c.height * c.width;
  std::vector<float> noise(static_cast<size_t>(3 * plane));
  for (int64_t i = 0; i < 3 * plane; ++i) {
    noise[static_cast<size_t>(i % 3 * plane + i / 3)] = static_cast<float>(random.below(256));
  }
  const std::vector<float> ours = predicted(run, noise, size),
                           theirs = run_by_opencv(export_options.file, noise, size);
  ASSERT_EQ(theirs.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(ours[i], theirs[i], rounds ? 1e-3 : 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PreparedPictures,
    testing::Values(
        PictureCase{"ResizedAndCropped", {{"resize", "22"}, {"scale", "0.02"}, {"mean", "80"}}},
        PictureCase{"InRGBWithMeansOfChannels",
                    {{"color", "rgb"}, {"scale", "0.01"}, {"mean", "104,117,123"}}},
        PictureCase{"InBGRWithMeansOfChannels", {{"scale", "0.01"}, {"mean", "104,117,123"}}},
        PictureCase{"RoundedToBytes", {{"resize", "22"}, {"scale", "0.02"}}, "bytes"},
        PictureCase{"Enlarged", {{"scale", "0.02"}}, "floats", 9, 12},
        PictureCase{"Bicubic", {{"resize", "22"}, {"interpolation", "bicubic"}, {"scale", "0.02"}}},
        PictureCase{"BicubicEnlarged",
                    {{"interpolation", "bicubic"}, {"scale", "0.02"}, {"mean", "80"}},
                    "floats",
                    9,
                    12},
        PictureCase{"AsByPillow", {{"resize", "22"}, {"resampling", "pillow"}, {"scale", "0.02"}}},
        PictureCase{"BicubicAsByPillow",
                    {{"resize", "22"},
                     {"resampling", "pillow"},
                     {"interpolation", "bicubic"},
                     {"scale", "0.02"}}},
        PictureCase{"HalvedAsByPillow",
                    {{"resampling", "pillow"}, {"scale", "0.02"}, {"mean", "80"}},
                    "floats",
                    40,
                    40},
        PictureCase{"Squashed", {{"fit", "squash"}, {"scale", "0.02"}, {"mean", "80"}}},
        PictureCase{
            "SquashedAndCropped",
            {{"fit", "squash"}, {"resize", "22"}, {"resize_width", "27"}, {"scale", "0.02"}}},
        PictureCase{"SquashedAsByPillow",
                    {{"fit", "squash"}, {"resampling", "pillow"}, {"scale", "0.02"}}},
        PictureCase{"BetweenBars", {{"fit", "pad"}, {"scale", "0.02"}, {"mean", "104,117,123"}}},
        PictureCase{"BetweenBarsOfATallOne",
                    {{"fit", "pad"}, {"scale", "0.02"}, {"mean", "80"}},
                    "floats",
                    50,
                    17},
        PictureCase{
            "BetweenBarsAsByPillow",
            {{"fit", "pad"}, {"resize", "22"}, {"resampling", "pillow"}, {"scale", "0.02"}}},
        PictureCase{"BetweenBarsOfBytes",
                    {{"fit", "pad"}, {"scale", "0.02"}, {"mean", "104.4,117.3,123.7"}},
                    "bytes"},
        PictureCase{"LessAMeanImage",
                    {{"fit", "squash"}, {"resize", "22"}, {"scale", "0.02"}, {"mean_image", ""}}},
        PictureCase{"LessAMeanImageInRGB",
                    {{"resize", "22"},
                     {"scale", "0.02"},
                     {"color", "rgb"},
                     {"mean", "100"},
                     {"mean_image", ""}}},
        PictureCase{"LessAMeanImageBetweenBars",
                    {{"fit", "pad"}, {"scale", "0.02"}, {"mean", "100"}, {"mean_image", ""}}},
        PictureCase{"OfTheNetsOwnSize", {{"scale", "0.02"}}, "floats", 20, 20}),
    [](const auto& info) { return info.param.name; });

TEST_F(ExportedFile, IsNotThereWhereItCannotBeVerified) {
  const TempFolder folder;
  ExportOptions o;
  o.run = trained({});
  o.file = folder / "net.onnx";
  o.verify = "another program";
  try {
    (void)export_run(o);
    ADD_FAILURE() << "not refused";
  } catch (const Error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("--verify another program: there is onnxruntime"));
  }
  EXPECT_FALSE(std::filesystem::exists(o.file));
  EXPECT_FALSE(std::filesystem::exists(folder / "net.onnx.new"));
}

TEST_F(ExportedFile, TellsClassesAndPreparation) {
  const TempFolder folder;
  ExportOptions o;
  o.run = trained({{"resize", "22"}, {"scale", "0.02"}});
  o.file = folder / "net.onnx";
  EXPECT_THAT(export_run(o).lines,
              testing::ElementsAre(HasSubstr("verified by reading it again: scores of 8 made-up")));
  EXPECT_THAT(read_text(o.file), AllOf(HasSubstr(R"(["a","b","c"])"), HasSubstr("preprocessing"),
                                       HasSubstr(R"("shorter_side":22)")));
}

}  // namespace
}  // namespace tandem::test
