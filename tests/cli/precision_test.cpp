#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/cpu_precision.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class Precision : public testing::Test {
 protected:
  std::string success(const std::string& arguments) {
    const Outcome outcome = desk_.tandem(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.output << outcome.errors;
    return outcome.output;
  }
  Desk desk_;
};

TEST_F(Precision, OfAnUnknownNameIsRefusedByEveryCommand) {
  for (const char* command :
       {"train --data synthetic --net lenet --steps 1 --out run", "profile --net lenet",
        "plan --net lenet", "net lenet", "test --run run"}) {
    EXPECT_THAT(desk_.refusal(std::string(command) + " --precision half"),
                StartsWith("precision 'half': there are float32, tf32, bfloat16 and float16"))
        << command;
  }
}

TEST_F(Precision, OfGpusIsRefusedElsewhere) {
  for (const char* command : {"train --data synthetic --net lenet --steps 1 --out run",
                              "profile --net lenet", "plan --net lenet --devices cpu:2"}) {
    EXPECT_THAT(desk_.refusal(std::string(command) + " --precision tf32"),
                HasSubstr("precision tf32: cpu devices do not support it"))
        << command;
    EXPECT_THAT(desk_.refusal(std::string(command) + " --precision float16"),
                HasSubstr("none of its layers with weights computes in float16 on device kind "
                          "'cpu': use --precision float32"))
        << command;
    EXPECT_THAT(desk_.refusal(std::string(command) + " --precision ''"),
                HasSubstr("precision '': there are float32, tf32, bfloat16 and float16"))
        << command;
  }
}

#ifdef TANDEM_HAS_CUDA
// What is only shown or simulated takes GPUs' kernels for it, which are asked without a GPU.
TEST_F(Precision, OfGpusIsShownAndSimulatedWithTheirKernels) {
  const auto first_output = [&](const std::string& precision) {
    return nlohmann::json::parse(success("net cifar10_quick --json --precision " + precision))
        .at("layers")
        .at(0)
        .at("outputs")
        .at(0);
  };
  EXPECT_EQ(first_output("float16").at("dtype"), "float16");
  EXPECT_EQ(first_output("tf32").at("dtype"), "float32");
  EXPECT_EQ(first_output("tf32").at("layout"), "NHWC");
  for (const std::string precision : {"tf32", "float16"}) {
    const std::string options = " --net cifar10_quick --devices sim:2 --precision " + precision;
    EXPECT_THAT(success("plan --no-tasks" + options),
                HasSubstr("memory is without what the kernels of cuda devices keep"));
    EXPECT_THAT(success("plan --no-tasks --strategy auto" + options), HasSubstr("chosen: "));
    EXPECT_THAT(success("net lenet --precision " + precision),
                HasSubstr("as cuda devices have it"));
  }
}
#endif

TEST_F(Precision, OfARunIsKeptForTestsAndPredictions) {
  const std::string reason = test::no_bfloat16();
  if (!reason.empty()) GTEST_SKIP() << reason;
  desk_.draw_two_classes("images");
  success(
      "train --net tiny.prototxt --data images --batch 4 --lr 0.01 --steps 6 --out run "
      "--precision bfloat16");
  EXPECT_THAT(desk_.read("run/run.json"), HasSubstr("\"precision\": \"bfloat16\""));
  success("train --out run --resume --steps 8");
  EXPECT_THAT(success("test --run run --data images"), HasSubstr(".safetensors, in bfloat16"));
  const auto tested = [&](const std::string& precision) {
    return nlohmann::json::parse(success("test --run run --data images --json" + precision));
  };
  const nlohmann::json half = tested(""), whole = tested(" --precision float32");
  EXPECT_EQ(half.at("precision"), "bfloat16");
  EXPECT_EQ(whole.at("precision"), "float32");
  EXPECT_NE(half.at("loss"), whole.at("loss"));
  success("predict --run run images/val");
}

TEST_F(Precision, OfATestIsFloat32WhereTheRunsIsNotAvailable) {
  desk_.draw_two_classes("images");
  success("train --net tiny.prototxt --data images --batch 4 --steps 2 --out run");
  desk_.write("run/run.json", test::replaced(desk_.read("run/run.json"), "\"float32\"",
                                             "\"float16\""));  // as GPUs leave it
  EXPECT_THAT(success("test --run run --data images"),
              AllOf(HasSubstr("in float32, not in the run's float16: "),
                    HasSubstr(".safetensors, in float32")));
  EXPECT_THAT(desk_.refusal("test --run run --data images --precision float16"),
              HasSubstr("computes in float16"));
}

TEST_F(Precision, OfARunMayChangeWhenItIsResumed) {
  const std::string reason = test::no_bfloat16();
  if (!reason.empty()) GTEST_SKIP() << reason;
  desk_.draw_two_classes("images");
  success(
      "train --net tiny.prototxt --data images --batch 4 --lr 0.01 --steps 2 --out run "
      "--precision bfloat16");
  EXPECT_THAT(desk_.refusal("train --out run --resume --steps 4 --precision tf32"),
              HasSubstr("use --precision float32 or bfloat16 here"));
  EXPECT_THAT(desk_.read("run/run.json"), HasSubstr("\"precision\": \"bfloat16\""));
  EXPECT_THAT(success("train --out run --resume --steps 4 --precision float32"),
              HasSubstr("precision float32 instead of bfloat16 from here on"));
  EXPECT_THAT(desk_.read("run/run.json"), HasSubstr("\"precision\": \"float32\""));
}

TEST_F(Precision, TakesALossScaleOfPowersOfTwoForFloat16Only) {
  desk_.draw_two_classes("images");
  const std::string train = "train --net tiny.prototxt --data images --batch 4 --steps 2 --out run";
  EXPECT_THAT(desk_.refusal(train + " --precision float16 --loss-scale 100"),
              HasSubstr("a loss scale of 100: it must be a power of two from 1 to 65536"));
  EXPECT_THAT(desk_.refusal(train + " --precision float16 --loss-scale 131072"),
              HasSubstr("it must be a power of two from 1 to 65536"));
  EXPECT_THAT(desk_.refusal(train + " --loss-scale 128"),
              HasSubstr("--loss-scale 128 applies to --precision float16 only, not to float32"));
  success(train);
  EXPECT_THAT(desk_.refusal("train --out run --resume --steps 4 --loss-scale 128"),
              HasSubstr("--loss-scale 128 applies to --precision float16 only, not to float32"));
}

TEST_F(Precision, IsShownForEveryTensorWithItsMemory) {
  const auto report = [&](const std::string& precision) {
    return nlohmann::json::parse(success("net cifar10_quick --json --precision " + precision));
  };
  const nlohmann::json whole = report("float32"), half = report("bfloat16");
  EXPECT_EQ(whole.at("layers").at(0).at("outputs").at(0).at("dtype"), "float32");
  EXPECT_EQ(half.at("layers").at(0).at("outputs").at(0).at("dtype"), "bfloat16");
  EXPECT_EQ(whole.at("weights"), half.at("weights"));
  EXPECT_LT(half.at("training_bytes").get<int64_t>(), whole.at("training_bytes").get<int64_t>());
}

TEST_F(Precision, HalvesTransfersOfActivationsInAPlan) {
  const auto transfer = [&](const std::string& precision) {
    const std::string text = success(
        "plan --net cifar10_quick --devices sim:2 --strategy hybrid --no-tasks --json "
        "--link bandwidth=1MB/s --precision " +
        precision);
    return nlohmann::json::parse(text).at("predicted_step_seconds").get<double>();
  };
  EXPECT_LT(transfer("bfloat16"), transfer("float32"));
}

// As for a CPU with AVX-512 and no tiles (AMX), which prefer another layout. Except the memory that
// only its kernels know.
TEST_F(Precision, MissingOnThisCpuIsShownAndPlanned) {
  const std::string net = "net cifar10_quick", plan = "plan --net cifar10_quick --strategy ";
  const auto without_memory = [&](const std::string& command, const std::string& before) {
    const Outcome outcome = desk_.tandem(command + " --precision bfloat16 --json", before);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    nlohmann::json tree = nlohmann::json::parse(outcome.output);
    tree.erase("memory_bytes");
    tree.erase("training_bytes");
    return tree;
  };
  const std::string wide = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16";
  for (const std::string cap : {"ONEDNN_MAX_CPU_ISA=AVX2", "ONEDNN_MAX_CPU_ISA=SSE41"}) {
    SCOPED_TRACE(cap);
    EXPECT_EQ(without_memory(net, cap), without_memory(net, wide));
    EXPECT_EQ(without_memory(plan + "hybrid", cap), without_memory(plan + "hybrid", wide));
    for (const std::string& command :
         {net, plan + "hybrid", plan + "two_phase --devices cpu:2", plan + "all", plan + "auto"}) {
      const Outcome outcome = desk_.tandem(command + " --precision bfloat16", cap);
      EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.errors;
      EXPECT_THAT(outcome.output,
                  AllOf(HasSubstr("memory is without what the kernels of cpu devices keep beside "
                                  "tensors: layer '"),
                        HasSubstr("this CPU does not multiply bfloat16")))
          << command;
    }
  }
}

TEST_F(Precision, MissingOnThisCpuIsReplacedByFloat32InATest) {
  desk_.draw_two_classes("images");
  success("train --net tiny.prototxt --data images --batch 4 --steps 2 --out run");
  desk_.write("run/run.json", test::replaced(desk_.read("run/run.json"), "\"float32\"",
                                             "\"bfloat16\""));  // as another CPU leaves it
  const std::string cap = "ONEDNN_MAX_CPU_ISA=AVX2";
  EXPECT_THAT(desk_.tandem("test --run run --data images", cap).output,
              AllOf(HasSubstr("in float32, not in the run's bfloat16: "),
                    HasSubstr(".safetensors, in float32")));
  EXPECT_THAT(desk_.refusal("test --run run --data images --precision bfloat16", cap),
              HasSubstr("this CPU does not multiply bfloat16"));
}

TEST_F(Precision, MissingOnThisCpuIsListedWithTheLibraryOfItsKernels) {
  const auto kernels = [&](const std::string& before) {
    const Outcome outcome = desk_.tandem("devices --json", before);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    for (const nlohmann::json& kind : nlohmann::json::parse(outcome.output)) {
      if (kind["kind"] == "cpu") return kind["devices"][0]["kernels"].get<std::string>();
    }
    return std::string("no cpu");
  };
  EXPECT_THAT(kernels("ONEDNN_MAX_CPU_ISA=AVX2"),
              AllOf(StartsWith("oneDNN "), HasSubstr("; no bfloat16")));
#if defined(__x86_64__)
  EXPECT_THAT(kernels("ONEDNN_MAX_CPU_ISA=SSE41"),
              AllOf(HasSubstr(" with SSE4.1; "), HasSubstr("no bfloat16")));
#endif
  const std::string lacks = "; no bfloat16";
  EXPECT_THAT(kernels(""), test::no_bfloat16().empty()
                               ? testing::Not(HasSubstr(lacks))
                               : testing::Matcher<std::string>(HasSubstr(lacks)));
}

// AVX-512 alone multiplies no bfloat16: each number is converted to float32 first.
TEST_F(Precision, OfNoUseOnThisCpuIsSaidByTraining) {
  if (const std::string reason = test::no_bfloat16(); !reason.empty()) GTEST_SKIP() << reason;
  const Outcome outcome =
      desk_.tandem("train --data synthetic --net lenet --steps 1 --precision bfloat16 --out run",
                   "ONEDNN_MAX_CPU_ISA=AVX512_CORE");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              HasSubstr("AVX-512; no instructions for bfloat16, so float32 is faster"));
}

#if defined(__x86_64__)
TEST_F(Precision, ThatIsSlowOnAnIntelCpuWithoutAmxIsSaidByDevices) {
  if (const std::string reason = test::no_bfloat16(); !reason.empty()) GTEST_SKIP() << reason;
  if (__builtin_cpu_supports("avx512bf16") == 0) GTEST_SKIP() << "this CPU has no AVX512_BF16";
  const Outcome outcome = desk_.tandem("devices", "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  const auto advice = HasSubstr("AVX-512; bfloat16 without AMX, so float32 is faster");
  if (__builtin_cpu_is("intel") != 0) {
    EXPECT_THAT(outcome.output, advice);
  } else {
    EXPECT_THAT(outcome.output, testing::Not(advice));
  }
}
#endif

TEST_F(Precision, MissingOnThisCpuIsRefusedForComputing) {
  for (const char* command :
       {"train --data synthetic --net lenet --steps 1 --out run", "profile --net lenet"}) {
    EXPECT_THAT(
        desk_.refusal(std::string(command) + " --precision bfloat16", "ONEDNN_MAX_CPU_ISA=AVX2"),
        HasSubstr("this CPU does not multiply bfloat16, which needs AVX-512 (or "
                  "ONEDNN_MAX_CPU_ISA excludes it): use --precision float32"))
        << command;
  }
}

}  // namespace
}  // namespace tandem
