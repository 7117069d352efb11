// The real cuDNN chooses engines for an H200 that is only described (h200.json, written by cuDNN on
// one): every kind of convolution has a usable engine, and a recorded one is found again. No GPU is
// needed, and nothing is computed.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "plugins/cuda/dnn_choice.h"
#include "tests/support/folders.h"

namespace tandem::cuda::detail {
namespace {

constexpr int64_t limit = scratch_limit(150109880320);  // totalGlobalMem of h200.json

// How a convolution is stored and multiplied in each precision.
struct Precision {
  const char* name;
  ConvolutionKind kind;
};
std::vector<Precision> precisions() {
  return {{"float32", {TANDEM_FLOAT32, false, false, false}},
          {"TF32", {TANDEM_FLOAT32, true, true, false}},
          {"TF32 NCHW", {TANDEM_FLOAT32, false, true, false}},
          {"bfloat16", {TANDEM_BFLOAT16, true, false, false}},
          {"bfloat16 NCHW", {TANDEM_BFLOAT16, false, false, false}},
          {"float16", {TANDEM_FLOAT16, true, false, false}},
          {"float16 NCHW", {TANDEM_FLOAT16, false, false, false}}};
}

struct NamedShape {
  const char* name;
  ConvolutionShape shape;
};
// Those of known nets with a batch of 64, and small odd ones.
std::vector<NamedShape> shapes() {
  return {
      {"3 x 3", {{64, 64, 56, 56}, {64, 64, 3, 3}, {64, 64, 56, 56}, 1, {1, 1}, {1, 1}, {1, 1}}},
      {"1 x 1", {{64, 256, 14, 14}, {64, 256, 1, 1}, {64, 64, 14, 14}, 1, {1, 1}, {0, 0}, {1, 1}}},
      {"stride 2",
       {{64, 128, 56, 56}, {128, 128, 3, 3}, {64, 128, 28, 28}, 1, {2, 2}, {1, 1}, {1, 1}}},
      {"two groups",
       {{64, 96, 27, 27}, {256, 48, 5, 5}, {64, 256, 27, 27}, 2, {1, 1}, {2, 2}, {1, 1}}},
      {"three channels",
       {{64, 3, 227, 227}, {96, 3, 11, 11}, {64, 96, 55, 55}, 1, {4, 4}, {0, 0}, {1, 1}}},
      {"groups of one channel",
       {{64, 96, 28, 28}, {96, 1, 3, 3}, {64, 96, 28, 28}, 96, {1, 1}, {1, 1}, {1, 1}}},
      {"odd channels", {{3, 5, 4, 6}, {7, 5, 1, 1}, {3, 7, 4, 6}, 1, {1, 1}, {0, 0}, {1, 1}}},
      {"dilation", {{2, 4, 9, 8}, {3, 4, 3, 2}, {2, 3, 5, 6}, 1, {1, 1}, {0, 0}, {2, 2}}},
      {"one pixel", {{3, 4, 4, 4}, {5, 4, 4, 4}, {3, 5, 1, 1}, 1, {1, 1}, {0, 0}, {1, 1}}},
      {"one channel", {{1, 1, 7, 5}, {1, 1, 3, 2}, {1, 1, 3, 2}, 1, {3, 2}, {1, 0}, {1, 1}}},
  };
}

class EnginesOfADescribedGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (CUDNN_VERSION < 90800 || cudnnGetVersion() < 90800) {
      GTEST_SKIP() << "only cuDNN 9.8 and newer choose for a GPU that is described";
    }
#if CUDNN_VERSION >= 90800
    std::ifstream file(test::source_folder() / "tests/cuda_dnn/h200.json");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    gpu_ = std::make_unique<Descriptor>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    ASSERT_EQ(cudnnBackendSetAttribute(gpu_->raw(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                       CUDNN_TYPE_CHAR, static_cast<int64_t>(text.size() + 1),
                                       text.c_str()),
              CUDNN_STATUS_SUCCESS);
    gpu_->finalize();
    target_.described = gpu_.get();
#endif
  }

  // body(graph, whether all bits of float32 are wanted, precision) for every shape, precision and
  // pass.
  template <class Body>
  void for_passes(const Body& body) const {
    for (const NamedShape& shape : shapes()) {
      for (const Precision& precision : precisions()) {
        for (const auto pass :
             {DnnPass::forward, DnnPass::backward_data, DnnPass::backward_weights}) {
          SCOPED_TRACE(sdk::text(shape.name, ", ", precision.name, ", ",
                                 pass_names[static_cast<size_t>(pass)]));
          const PassGraph graph(target_, shape.shape, precision.kind, pass);
          body(graph, keeps_all_bits(precision.kind));
        }
      }
    }
  }
  [[nodiscard]] std::optional<Plan> chosen(const PassGraph& graph, bool full) const {
    return first_usable_plan(target_, graph, full, limit);
  }

  std::unique_ptr<Descriptor> gpu_;
  DnnTarget target_;
};

TEST_F(EnginesOfADescribedGpu, ServeEveryConvolutionInEveryPrecision) {
  for_passes([&](const PassGraph& graph, bool full) {
    const std::optional<Plan> plan = chosen(graph, full);
    ASSERT_TRUE(plan);
    EXPECT_LE(plan->scratch_bytes(), limit);
    EXPECT_FALSE(full && plan->algorithm().on_tensor_cores);
  });
}

TEST_F(EnginesOfADescribedGpu, AreTheSameForTheSameShapes) {
  for_passes([&](const PassGraph& graph, bool full) {
    EXPECT_EQ(chosen(graph, full)->algorithm(), chosen(graph, full)->algorithm());
  });
}

// So that it is enough to ask for a few of them.
TEST_F(EnginesOfADescribedGpu, HaveTheSameOrderHoweverManyAreAskedFor) {
  for_passes([&](const PassGraph& graph, bool) {
    const EngineModel model(target_, graph, CUDNN_HEUR_MODE_A);
    const std::vector<EngineConfig> few = model.first(2), all = model.first(model.count());
    ASSERT_LE(few.size(), all.size());
    for (size_t i = 0; i < few.size(); ++i) {
      EXPECT_EQ(algorithm_of(few[i]), algorithm_of(all[i]));
    }
  });
}

TEST_F(EnginesOfADescribedGpu, UseTensorCoresWhereTheyMay) {
  for (const NamedShape& shape : {shapes()[0], shapes()[1], shapes()[2], shapes()[3]}) {
    for (const Precision& precision : precisions()) {
      if (keeps_all_bits(precision.kind)) continue;
      SCOPED_TRACE(sdk::text(shape.name, ", ", precision.name));
      const PassGraph graph(target_, shape.shape, precision.kind, DnnPass::forward);
      EXPECT_TRUE(chosen(graph, false)->algorithm().on_tensor_cores);
    }
  }
}

// So that a fused ReLU gives the bits of a separate one.
TEST_F(EnginesOfADescribedGpu, ThatAddABiasAreTheSameWithAReluInNhwc) {
  for (const NamedShape& shape : shapes()) {
    for (const Precision& precision : precisions()) {
      if (!precision.kind.channels_last) continue;
      SCOPED_TRACE(sdk::text(shape.name, ", ", precision.name));
      const auto plan = [&](ConvolutionEpilogue epilogue) {
        return chosen(PassGraph(target_, shape.shape, precision.kind, DnnPass::forward, epilogue),
                      false);
      };
      const std::optional<Plan> biased = plan({true, false}), rectified = plan({true, true});
      ASSERT_TRUE(biased && rectified);
      EXPECT_TRUE(biased->adds_bias());
      EXPECT_EQ(rectified->algorithm(), biased->algorithm());
    }
  }
}

TEST_F(EnginesOfADescribedGpu, AreFoundAgainByTheTextOfARecord) {
  for_passes([&](const PassGraph& graph, bool full) {
    constexpr size_t several = 3;
    size_t prepared = 0;
    for (EngineConfig& engine : engines_to_measure(target_, graph, full, false)) {
      if (prepared == several) break;
      const std::optional<Plan> plan = Plan::of(target_, std::move(engine), limit);
      if (!plan) continue;
      ++prepared;
      const std::string text = text_of({plan->algorithm()}, true);
      const ConvolutionAlgorithm recorded = *read_algorithms(text.c_str())[0];
      std::optional<EngineConfig> config = named_engine(target_, graph, recorded);
      ASSERT_TRUE(config) << text;
      const std::optional<Plan> again = Plan::of(target_, std::move(*config), limit);
      ASSERT_TRUE(again) << text;
      EXPECT_EQ(again->algorithm(), plan->algorithm()) << text;
      EXPECT_EQ(again->scratch_bytes(), plan->scratch_bytes()) << text;
    }
  });
}

// A convolution of VGG-16.
TEST_F(EnginesOfADescribedGpu, AreMeasuredWithTensorCoresWhereOthersWouldTakeLong) {
  const ConvolutionShape shape{
      {256, 64, 224, 224}, {64, 64, 3, 3}, {256, 64, 224, 224}, 1, {1, 1}, {1, 1}, {1, 1}};
  const ConvolutionKind tf32 = precisions()[1].kind;
  for (const auto pass : {DnnPass::forward, DnnPass::backward_data, DnnPass::backward_weights}) {
    SCOPED_TRACE(pass_names[static_cast<size_t>(pass)]);
    const PassGraph graph(target_, shape, tf32, pass);
    ASSERT_TRUE(chosen(graph, false)->algorithm().on_tensor_cores);
    constexpr size_t measured = 6;
    size_t prepared = 0;
    for (EngineConfig& engine : engines_to_measure(target_, graph, false, true)) {
      const std::optional<Plan> plan = Plan::of(target_, std::move(engine), limit);
      if (!plan) continue;
      EXPECT_TRUE(plan->algorithm().on_tensor_cores) << prepared;
      if (++prepared == measured) break;
    }
    EXPECT_EQ(prepared, measured);
  }
}

TEST_F(EnginesOfADescribedGpu, AreNoneForAnUnknownNumberOrKnob) {
  const PassGraph graph(target_, shapes()[0].shape, precisions()[0].kind, DnnPass::forward);
  EXPECT_FALSE(named_engine(target_, graph, {.engine = 12345}));
  EXPECT_FALSE(named_engine(target_, graph, {.engine = -1}));
  ConvolutionAlgorithm known = chosen(graph, true)->algorithm();
  ASSERT_TRUE(named_engine(target_, graph, known));
  known.knobs.push_back({12345, 1});
  EXPECT_FALSE(named_engine(target_, graph, known));
}

}  // namespace
}  // namespace tandem::cuda::detail
