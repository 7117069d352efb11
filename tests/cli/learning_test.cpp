// Data, weights of classes and rates with which nothing can be learned: refused or noted before the
// first step.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/support/image_folders.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string net =
    "layer { name: 'data' type: 'Data' top: 'data' top: 'label' transform_param { crop_size: 8 } }"
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "
    "num_output: 2 weight_filler { type: 'xavier' } } }"
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }";

class LearningRefusals : public testing::Test {
 protected:
  void SetUp() override {
    desk.draw_two_classes("images");
    desk.write("net.prototxt", net);
  }
  Outcome train(const std::string& more) const {
    return desk.tandem("train --net net.prototxt --steps 1 --batch 4 --out run " + more);
  }
  Desk desk;
};

TEST_F(LearningRefusals, EveryClassWeightOfZeroIsRefusedAndOneIsNoted) {
  EXPECT_THAT(train("--data images --class-weights 0,0").errors,
              HasSubstr("all class weights are 0: nothing would be learned"));
  EXPECT_FALSE(std::filesystem::exists(desk / "run"));
  // Only class 0 has a weight, and no image.
  std::string list;
  for (int i = 0; i < 8; ++i) {
    const std::string name = std::to_string(i) + ".ppm";
    test::write_ppm(desk / name, 8, i, 1);
    list += fmt::format("{} {}\n", name, 1 + i % 2);
  }
  desk.write("list.txt", list);
  EXPECT_THAT(train("--data list.txt --adapt-classes --class-weights 1,0,0").errors,
              HasSubstr("--class-weights 1,0,0: the weight of every class that has training images "
                        "is 0, so that nothing is learned"));
  EXPECT_THAT(train("--data images --class-weights 1,0").errors,
              HasSubstr("the weight of every class but one"));
  desk.write("three.txt", "0.ppm 0\n1.ppm 1\n2.ppm 2\n3.ppm 0\n4.ppm 1\n5.ppm 2\n");
  const Outcome one =
      train("--data three.txt --data-option val_fraction=0 --adapt-classes --class-weights 1,1,0");
  EXPECT_EQ(one.code, 0) << one.errors;
  EXPECT_THAT(one.output, HasSubstr("class weight 0 (--class-weights): nothing is learned from"));
  desk.write("weights.csv", "class,weight\n0,1\n1,2\n2,1\n");
  const Outcome table = desk.tandem(
      "train --net net.prototxt --steps 1 --batch 4 --data three.txt --data-option val_fraction=0 "
      "--adapt-classes --class-weights weights.csv --out table");
  EXPECT_EQ(table.code, 0) << table.errors;
}

TEST_F(LearningRefusals, RatesAndStepsThatCannotBeMeantAreNoted) {
  EXPECT_THAT(train("--data images --lr 0.1 --wd 20 --label-smoothing 0.9 --solver-option "
                    "warmup_iter=7")
                  .output,
              AllOf(HasSubstr("weight_decay 20 times the learning rate 0.1 is 2"),
                    HasSubstr("--label-smoothing 0.9: most of each target"),
                    HasSubstr("warmup_iter 7: the run ends after 1 steps")));
  const std::string output =
      desk.tandem("train --data images --net net.prototxt --steps 1 --batch 500 --out b").output;
  EXPECT_THAT(output, HasSubstr("a step reads 500 images, and there are "));
  EXPECT_THAT(output, Not(HasSubstr("a step has 500 images")));
}

TEST_F(LearningRefusals, ALayerThatMakesTheSameOfEveryImageIsNamedOnceItsScoresAreSeen) {
  const auto with = [&](const std::string& layer) {
    std::string changed = net;
    const std::string last = "layer { name: 'ip'";
    changed.insert(changed.find(last), layer);
    changed.replace(changed.find("bottom: 'data' top: 'ip'"), 14, "bottom: 'same'");
    desk.write("net.prototxt", changed);
    std::filesystem::remove_all(desk / "run");
    return desk.tandem(
        "train --net net.prototxt --epochs 2 --lr 0.00001 --batch 4 --out run --data images");
  };
  const std::string conv =
      "layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv' convolution_param { "
      "num_output: 2 kernel_size: 3 weight_filler { type: 'msra' } } }";
  const Outcome clipped = with(conv +
                               "layer { name: 'clip' type: 'Clip' bottom: 'conv' top: 'same' "
                               "clip_param { min: 1000000 max: 2000000 } }");
  EXPECT_THAT(clipped.output,
              HasSubstr("have the same scores: layer 'clip' (Clip) makes the same"));
  // Said once, not after every epoch.
  EXPECT_EQ(clipped.output.find("have the same scores"),
            clipped.output.rfind("have the same scores"));
  EXPECT_THAT(with(conv + "layer { name: 'difference' type: 'Eltwise' bottom: 'conv' bottom: "
                          "'conv' top: 'same' eltwise_param { coeff: 1 coeff: -1 } }")
                  .output,
              HasSubstr("layer 'difference' (Eltwise) makes the same of every image"));
  EXPECT_THAT(with(conv + "layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'same' }").output,
              Not(HasSubstr("have the same scores")));
}

TEST_F(LearningRefusals, ARateOfZeroIsNoted) {
  const Outcome outcome = train("--data images --lr 0");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("the learning rate is 0 (--lr, base_lr)"));
  EXPECT_THAT(
      desk.tandem("train --net net.prototxt --data images --steps 1 --batch 4 --out other").output,
      Not(HasSubstr("rate is 0")));
}

TEST_F(LearningRefusals, ImagesThatAreAllTheSameAreRefused) {
  desk.make_folder("gray/a");
  desk.make_folder("gray/b");
  for (const char* name : {"a/1.ppm", "a/2.ppm", "a/3.ppm", "b/4.ppm", "b/5.ppm", "b/6.ppm"}) {
    desk.write(std::string("gray/") + name, "P6\n2 2\n255\n" + std::string(12, '\x40'));
  }
  const Outcome outcome = train("--data gray --data-option val_fraction=0");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("6 training images"), HasSubstr("the same pixels"),
                                    HasSubstr("all 64")));
  EXPECT_THAT(desk.tandem("data gray").output,
              HasSubstr("suggestion: all images are copies of one: nothing can be learned"));
  EXPECT_THAT(desk.tandem("data images").output, Not(HasSubstr("nothing can be learned")));
  // Copies of one picture, of which each random crop is another.
  std::string picture = "P6\n40 40\n255\n";
  for (int i = 0; i < 3 * 40 * 40; ++i) picture += static_cast<char>(i * i % 251);
  for (const char* name : {"a/1.ppm", "a/2.ppm", "b/3.ppm", "b/4.ppm"}) {
    desk.make_folder(std::string("copies/") + name[0]);
    desk.write(std::string("copies/") + name, picture);
  }
  EXPECT_THAT(train("--data copies --data-option resize=30 --data-option val_fraction=0").output,
              HasSubstr("were looked at, and all are copies of one: there is nothing"));
  // Pictures that differ, and a scale that makes them equal.
  const Outcome scaled = train("--data images --data-option scale=0");
  EXPECT_EQ(scaled.code, 1);
  EXPECT_THAT(scaled.errors, HasSubstr("all 0 (is the scale 0"));
}

TEST_F(LearningRefusals, LabelsThatAreAllEqualAreRefused) {
  std::string list;
  for (int i = 0; i < 6; ++i) {
    const std::string name = std::to_string(i) + ".ppm";
    test::write_ppm(desk / name, 8, i, 1);
    list += name + " 1\n";
  }
  desk.write("list.txt", list);  // the number says that there is a class 0, too
  EXPECT_THAT(
      desk.tandem("data list.txt").output,
      HasSubstr("suggestion: all training images are of one class: nothing can be learned"));
  const Outcome outcome = train("--data list.txt");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("training images are of class '1', so that there is "
                                        "nothing to tell apart"));
}

TEST_F(LearningRefusals, ANetThatCannotLearnIsRefusedAndShownWithItsReason) {
  desk.write("zero.prototxt",
             "layer { name: 'data' type: 'Data' top: 'data' top: 'label' transform_param { "
             "crop_size: 8 } }"
             "layer { name: 'hidden' type: 'InnerProduct' bottom: 'data' top: 'hidden' "
             "inner_product_param { num_output: 5 } }"
             "layer { name: 'ip' type: 'InnerProduct' bottom: 'hidden' top: 'ip' "
             "inner_product_param { num_output: 2 } }"
             "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: "
             "'loss' }");
  const Outcome outcome = desk.tandem("train --data images --net zero.prototxt --out run");
  EXPECT_EQ(outcome.code, 1);
  const std::string reason = "nothing can be learned: layer 'hidden' (InnerProduct)";
  EXPECT_THAT(outcome.errors, HasSubstr(reason));
  EXPECT_THAT(desk.tandem("net zero.prototxt").output, HasSubstr(reason));
  EXPECT_THAT(desk.tandem("net net.prototxt").output, Not(HasSubstr("nothing can be learned")));
}

}  // namespace
}  // namespace tandem
