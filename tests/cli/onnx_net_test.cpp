// A net of an ONNX file as a user has it: trained from the file's weights, tested, used for
// predictions and written as ONNX again; resumed, recomputed, in bfloat16 and on ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/cli/ranks.h"
#include "tests/support/folders.h"
#include "tests/support/safetensors_file.h"

namespace tandem {
namespace {

using test::checkpoint;
using test::Desk;
using test::Outcome;
using test::read_safetensors;
using testing::AllOf;
using testing::HasSubstr;

// A transformer of one block and a net with BatchNorm, both of 12x12 pixels and four classes.
constexpr const char* nets[] = {"tokens_old", "plain_training"};

class OnnxNet : public testing::TestWithParam<const char*> {
 protected:
  OnnxNet() {
    desk_.draw_two_classes("images");
    std::filesystem::copy_file(
        test::source_folder() / "tests/reference/onnx" / (std::string(GetParam()) + ".onnx"),
        desk_ / "net.onnx");
  }
  // Trains in the folder `name`; both files of its checkpoint.
  std::string trained(const std::string& name, const std::string& options,
                      const std::string& before = "") {
    const Outcome outcome =
        desk_.tandem("train --net net.onnx --data images --batch 4 --threads 1 --seed 3 --out " +
                         name + " " + options,
                     before);
    EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
    output_ = outcome.output;
    return outcome.code == 0 ? checkpoint(desk_, name) : name;
  }

  // The same, resumed from the checkpoint after `step`.
  std::string resumed(const std::string& options, int step) {
    const std::string name = "run" + std::to_string(step);
    trained(name, options + " --snapshot 1");
    for (const char* file : {".safetensors", ".state.safetensors"}) {
      std::filesystem::copy_file(desk_ / (name + "/net_iter_" + std::to_string(step) + file),
                                 desk_ / (name + "/last" + file),
                                 std::filesystem::copy_options::overwrite_existing);
    }
    const Outcome rest = desk_.tandem("train --resume --out " + name);
    EXPECT_EQ(rest.code, 0) << rest.output << rest.errors;
    return checkpoint(desk_, name);
  }

  Desk desk_;
  std::string output_;
};

TEST_P(OnnxNet, IsFineTunedTestedAndUsedForPredictions) {
  trained("run", "--steps 12");
  EXPECT_THAT(output_, HasSubstr("weights of "));
  EXPECT_EQ(desk_.tandem("test --run run --data images").code, 0);
  const Outcome prediction = desk_.tandem("predict --run run images/val/red/1.ppm");
  EXPECT_EQ(prediction.code, 0) << prediction.errors;
  EXPECT_THAT(prediction.output, AllOf(HasSubstr("red"), HasSubstr("blue")));
}

TEST(WideOnnxNet, GetsImagesAsWideAsItsInput) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.write("wide.prototxt",
             test::replaced(test::tiny_net(), "crop_size: 8", "crop_h: 8 crop_w: 16"));
  ASSERT_EQ(desk.tandem("train --net wide.prototxt --data images --steps 1 --out first").code, 0);
  ASSERT_EQ(desk.tandem("export --run first wide.onnx").code, 0);
  std::filesystem::remove_all(desk / "first");
  const Outcome tuned = desk.tandem("train --net wide.onnx --data images --steps 2 --out run");
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  EXPECT_THAT(tuned.output, HasSubstr("cropped to 8x16"));
  ASSERT_EQ(desk.tandem("train --weights run --data images --steps 2 --out again").code, 0);
  ASSERT_EQ(desk.tandem("import wide.onnx --out imported").code, 0);
  const Outcome prediction = desk.tandem("predict --run imported images/val/red/1.ppm");
  EXPECT_EQ(prediction.code, 0) << prediction.errors;
}

TEST_P(OnnxNet, IsWrittenAsOnnxWithWhatWasRead) {
  const auto weights_of = [&](const std::string& run) {
    return read_safetensors(desk_ / (run + "/last.safetensors")).arrays;
  };
  const Outcome import = desk_.tandem("import net.onnx --out first");
  ASSERT_EQ(import.code, 0) << import.errors;
  for (const auto& [from, to] : {std::pair{"first", "second"}, {"second", "third"}}) {
    const std::string file = std::string(from) + ".onnx";
    const Outcome out = desk_.tandem("export --run " + std::string(from) + " " + file);
    ASSERT_EQ(out.code, 0) << out.errors;
    EXPECT_THAT(out.output, HasSubstr("verified by reading it again: scores of"));
    ASSERT_EQ(desk_.tandem("import " + file + " --out " + to).code, 0);
  }
  const auto first = weights_of("first"), second = weights_of("second"),
             third = weights_of("third");
  EXPECT_EQ(first.size(), second.size());
  EXPECT_EQ(first.size(), third.size());
  for (const auto& [name, array] : second) {
    ASSERT_TRUE(first.contains(name) && third.contains(name)) << name;
    EXPECT_EQ(array.values, third.at(name).values) << name;
    // Running statistics are sums, of which another export has another number.
    const bool is_sum =
        name.ends_with(".mean") || name.ends_with(".variance") || name.ends_with(".scale_factor");
    if (!is_sum) {
      EXPECT_EQ(array.values, first.at(name).values) << name;
    }
  }
}

TEST_P(OnnxNet, OfAnExportKeepsTheDeviationsThatImagesAreDividedBy) {
  ASSERT_EQ(desk_.tandem("import net.onnx --out first").code, 0);
  ASSERT_EQ(desk_.tandem("export --run first again.onnx").code, 0);
  ASSERT_EQ(desk_
                .tandem("train --net again.onnx --data images --batch 4 --steps 3 "
                        "--lr 0.1 --out run")
                .code,
            0);
  const auto before = read_safetensors(desk_ / "first/last.safetensors").arrays;
  const auto after = read_safetensors(desk_ / "run/last.safetensors").arrays;
  ASSERT_TRUE(after.contains("std.weight"));
  EXPECT_EQ(before.at("std.weight").values, after.at("std.weight").values);
  size_t changed = 0;
  for (const auto& [name, array] : after) {
    const auto old = before.find(name);
    changed += old != before.end() && old->second.values != array.values ? 1 : 0;
  }
  EXPECT_GT(changed, 3U);
}

TEST_P(OnnxNet, LearnsInAllOfTheFilesParameters) {
  ASSERT_EQ(desk_.tandem("import net.onnx --out first").code, 0);
  trained("run", "--steps 3 --lr 0.1");
  const auto after = read_safetensors(desk_ / "run/last.safetensors").arrays;
  for (const auto& [name, array] : read_safetensors(desk_ / "first/last.safetensors").arrays) {
    const auto found = after.find(name);
    // The last layer is another one; the weight of the running sums has its limit from the start.
    const bool is_kept = name == "std.weight" || name.ends_with(".scale_factor");
    if (found == after.end() || is_kept) continue;
    EXPECT_NE(array.values, found->second.values) << name;
  }
}

TEST_P(OnnxNet, ResumedHasTheBitsOfARunNeverInterrupted) {
  const std::string options = "--steps 8 --devices cpu:2 --strategy layerwise";
  const std::string whole = trained("whole", options);
  for (const int stop : {2, 5}) EXPECT_TRUE(resumed(options, stop) == whole) << stop;
}

TEST_P(OnnxNet, RecomputedHasTheSameBits) {
  EXPECT_TRUE(trained("run", "--steps 6") == trained("recomputed", "--steps 6 --recompute"));
}

TEST_P(OnnxNet, OnTwoRanksHasTheBitsOfTwoDevices) {
  if (const std::string reason = test::no_mpi(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string options = "--steps 6 --strategy two_phase ";
  EXPECT_TRUE(trained("ranks", options + "--devices cpu:1", test::mpirun(2)) ==
              trained("devices", options + "--devices cpu:2"));
}

TEST_P(OnnxNet, InBfloat16IsResumedWithTheSameBits) {
  const std::string options = "--steps 6 --precision bfloat16 --devices cpu:2 --strategy layerwise";
  const Outcome probe = desk_.tandem(
      "train --net net.onnx --data images --batch 4 --steps 1 --out "
      "probe --precision bfloat16");
  if (probe.code != 0) GTEST_SKIP() << probe.errors;
  EXPECT_TRUE(resumed(options, 4) == trained("whole", options));
}

INSTANTIATE_TEST_SUITE_P(All, OnnxNet, testing::ValuesIn(nets),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tandem
