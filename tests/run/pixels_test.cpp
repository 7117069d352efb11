// Runs whose pixels are bytes: on data that are bytes the weights of floats, bit for bit, with any
// strategy; and a run keeps its choice, on whichever devices it goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/adapted/classes.h"
#include "core/run/folder/run_folder.h"
#include "include/tandem/evaluate.h"
#include "include/tandem/predict.h"
#include "tests/support/cifar_files.h"
#include "tests/support/cpu_precision.h"
#include "tests/support/message_of.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PixelRuns : public Runs {
 protected:
  static void SetUpTestSuite() {
    Runs::SetUpTestSuite();
    make_cifar(folder_->path() / "cifar", 60, 20);
  }
  // CIFAR's pictures cropped, mirrored and padded: pixels move, and stay bytes.
  static TrainOptions cifar(const std::string& pixels, const std::string& devices = "cpu:1",
                            const std::string& strategy = "sequential", int64_t steps = 6) {
    TrainOptions o = options(steps);
    o.data = (folder_->path() / "cifar").string();
    o.net_text = write_net(with_class_count(small_net(), 10));
    o.data_parameters = {{"mirror", "true"},      {"pad", "4"},
                         {"resize", "32"},        {"scale", "0.02"},
                         {"val_fraction", "0.2"}, {"mean", "104,117,123"}};
    o.pixels = pixels;
    o.devices = devices;
    o.strategy = strategy;
    if (strategy == "two_phase") o.strategy_options["split"] = "fc3";
    o.machine.threads = 2;
    return o;
  }
  // Pictures that are resampled: rounded to bytes they are others.
  static TrainOptions resized(const std::string& pixels, int64_t steps = 6) {
    TrainOptions o = options(steps);
    o.data_parameters["crop_area"] = "0.4,1";
    o.pixels = pixels;
    o.machine.threads = 2;
    return o;
  }
  static RunRecord record_of(const std::filesystem::path& folder) {
    return RunFolder::open(folder).record();
  }
};

TEST_F(PixelRuns, OfBytesGiveTheWeightsOfFloatsWithEveryStrategy) {
  for (const auto& [devices, strategy] : {std::pair{"cpu:1", "sequential"},
                                          {"cpu:2", "sequential"},
                                          {"cpu:2", "two_phase"},
                                          {"cpu:2", "layerwise"},
                                          {"cpu:2", "hybrid"},
                                          {"cpu:2", "asymmetric"},
                                          {"cpu:2", "fc_parallel"}}) {
    const Weights floats = run(cifar("floats", devices, strategy));
    EXPECT_TRUE(run(cifar("bytes", devices, strategy)) == floats) << devices << " " << strategy;
  }
}

TEST_F(PixelRuns, GiveTheSameBitsUnderRandomStreamDelays) {
  const Weights plain = run(cifar("bytes", "cpu:2", "layerwise"));
  TrainOptions delayed = cifar("bytes", "cpu:2", "layerwise");
  delayed.machine.delay_seed = 11;
  delayed.machine.delay_seconds = 0.002;
  EXPECT_EQ(run(delayed), plain);
}

TEST_F(PixelRuns, InBfloat16GiveTheWeightsOfFloats) {
  const std::string reason = no_bfloat16();
  if (!reason.empty()) GTEST_SKIP() << reason;
  TrainOptions floats = cifar("floats", "cpu:2", "two_phase"),
               bytes = cifar("bytes", "cpu:2", "two_phase");
  floats.precision = bytes.precision = "bfloat16";
  EXPECT_EQ(run(bytes), run(floats));
}

TEST_F(PixelRuns, EvaluateTheSame) {
  Observer quiet;
  const TrainResult floats = train(cifar("floats"), quiet), bytes = train(cifar("bytes"), quiet);
  ASSERT_GT(bytes.best.samples, 0);
  EXPECT_EQ(bytes.best.loss, floats.best.loss);
  TestOptions testing;
  testing.run = bytes.run;
  const TestResult as_trained = test_run(testing, quiet);
  EXPECT_EQ(as_trained.pixels, "bytes");
  testing.pixels = "floats";
  const TestResult as_floats = test_run(testing, quiet);
  EXPECT_EQ(as_floats.pixels, "floats");
  EXPECT_EQ(as_trained.evaluation.loss, as_floats.evaluation.loss);
  testing.pixels = "";
  testing.devices = "cpu:2";
  EXPECT_EQ(test_run(testing, quiet).evaluation.samples, as_trained.evaluation.samples);
}

TEST_F(PixelRuns, AreFloatsOnTheCpuByDefault) {
  for (const auto& [given, chosen] :
       {std::pair{"", "floats"}, {"auto", "floats"}, {"bytes", "bytes"}}) {
    const TrainOptions o = cifar(given, "cpu:1", "sequential", 1);
    run(o);
    EXPECT_EQ(record_of(o.out).options.pixels, chosen) << given;
  }
}

TEST_F(PixelRuns, OfRoundedPixelsDifferFromThoseOfFloats) {
  EXPECT_NE(run(resized("bytes")), run(resized("floats")));
}

TEST_F(PixelRuns, ResumeWithTheirPixelsOnOtherDevices) {
  for (const char* devices : {"", "cpu:2"}) {
    TrainOptions half = resized("bytes", 3), whole = resized("bytes", 6);
    run(half);
    TrainOptions rest;
    rest.out = half.out;
    rest.resume = true;
    rest.steps = 6;
    rest.devices = devices;
    const Weights resumed = run(rest), never_stopped = run(whole);
    EXPECT_EQ(record_of(half.out).options.pixels, "bytes");
    if (rest.devices.empty()) {
      EXPECT_EQ(resumed, never_stopped);
    }
  }
  TrainOptions half = resized("bytes", 3);
  run(half);
  TrainOptions rest;
  rest.out = half.out;
  rest.resume = true;
  rest.steps = 6;
  rest.pixels = "floats";
  EXPECT_THAT(failure_of(rest), HasSubstr("--pixels cannot change when run"));
  rest.pixels = "auto";
  EXPECT_EQ(run(rest), run(resized("bytes", 6)));
}

TEST_F(PixelRuns, OfARecordWithoutPixelsAreRefused) {
  const TrainOptions o = resized("bytes", 1);
  run(o);
  std::string text = to_json(record_of(o.out));
  const std::string word = "\"pixels\": \"bytes\",";
  ASSERT_NE(text.find(word), text.npos);
  text.erase(text.find(word), word.size());
  EXPECT_THAT(message_of([&] { (void)run_record_from_json(text, "run.json"); }),
              HasSubstr("'run.json' is not a run's record: 'options.pixels' is missing"));
}

// Mixed pictures are floats made of bytes, so that what is evaluated is what was learnt.
TEST_F(PixelRuns, MixFloatsConvertedFromBytes) {
  TrainOptions bytes = cifar("bytes"), floats = cifar("floats");
  bytes.mixup = floats.mixup = 0.3;
  EXPECT_EQ(run(bytes), run(floats));
}

TEST_F(PixelRuns, PredictFromThePixelsTheyWereTrainedOn) {
  TrainOptions o = resized("bytes", 2);
  run(o);
  // Larger than the net's crop: resampled.
  const std::filesystem::path image = folder_->path() / "one.ppm";
  write_ppm(image, 31, 1, 7);
  const auto best = [&](const std::string& pixels) {
    RunFolder folder = RunFolder::open(o.out);
    RunRecord record = folder.record();
    record.options.pixels = pixels;
    folder.write(record, folder.net(), folder.solver());
    return Predictor(o.out).predict({image}, 1)[0].scores[0].value;
  };
  const double bytes = best("bytes"), floats = best("floats");
  EXPECT_NE(bytes, floats);
  EXPECT_NEAR(bytes, floats, 0.01);
}

TEST_F(PixelRuns, OfDataThatAreFloatsAreRefusedWithTheReason) {
  TrainOptions o = cifar("bytes");
  o.data = "synthetic";
  o.data_parameters = {{"size", "60"}, {"val_size", "15"}};
  EXPECT_EQ(failure_of(o),
            "--pixels bytes: data 'synthetic': data set 'synthetic' gives floats; leave the option "
            "out, or give --pixels floats");
  TrainOptions padded = cifar("bytes");
  padded.data_parameters["mean"] = "-40";
  EXPECT_THAT(failure_of(padded), AllOf(HasSubstr("data set 'cifar10_binary' gives floats here"),
                                        HasSubstr("pad shows the mean of -40")));
  TrainOptions unknown = cifar("byte");
  EXPECT_EQ(failure_of(unknown),
            "--pixels 'byte': there are auto, bytes and floats (did you mean 'bytes'?)");
}

TEST_F(PixelRuns, ResumeOnlyOnDataThatHaveBytes) {
  const TrainOptions o = cifar("bytes", "cpu:1", "sequential", 1);
  run(o);
  RunFolder folder = RunFolder::open(o.out);
  RunRecord record = folder.record();
  record.data_parameters["mean"] = "-40";  // as padding shows it, no byte
  folder.write(record, folder.net(), folder.solver());
  TrainOptions rest;
  rest.out = o.out;
  rest.resume = true;
  rest.steps = 2;
  for (const char* given : {"", "bytes"}) {
    rest.pixels = given;
    EXPECT_THAT(failure_of(rest),
                AllOf(HasSubstr("learns from pixels as bytes, but data '"),
                      HasSubstr("pad shows the mean of -40"),
                      HasSubstr("; resume it with data that have bytes, or begin")))
        << given;
  }
}

TEST_F(PixelRuns, TestAsFloatsOnDataWithoutBytes) {
  Observer quiet;
  TrainOptions o = cifar("bytes", "cpu:1", "sequential", 1);
  o.data_parameters.erase("pad");  // which made-up data do not know
  TestOptions testing;
  testing.run = train(o, quiet).run;
  testing.data = "synthetic";
  const TestResult result = test_run(testing, quiet);
  EXPECT_EQ(result.pixels, "floats");
  EXPECT_THAT(result.notes, HasSubstr("pixels are floats, not bytes as in the run: data set "
                                      "'synthetic' gives floats"));
  testing.pixels = "bytes";
  EXPECT_THROW((void)test_run(testing, quiet), Error);
}

}  // namespace
}  // namespace tandem::test
