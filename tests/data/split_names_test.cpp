// The names of splits as people spell them.
#include "datasets/picture/split_names.h"

#include <gtest/gtest.h>

namespace tandem::picture {
namespace {

TEST(SplitNames, AreKnownInAnyCaseAndUsualSpelling) {
  for (const char* name : {"train", "TRAIN", "Training", "trainset", "train_set", "Train-Data",
                           "trainingImages", "training_set", "train2017", "train1", "Train Set"}) {
    EXPECT_EQ(split_of_name(name), "train") << name;
  }
  for (const char* name : {"val", "Val", "VALID", "validation", "Validation_Set", "dev", "devset",
                           "eval", "evaluation", "val2017", "hold-out", "PublicTest"}) {
    EXPECT_EQ(split_of_name(name), "val") << name;
  }
  for (const char* name : {"test", "TEST", "Testing", "testset", "test1", "test_images", "TestData",
                           "test-2", "PrivateTest"}) {
    EXPECT_EQ(split_of_name(name), "test") << name;
  }
}

TEST(SplitNames, AWordBesideItIsKeptAsItMayBeAClass) {
  const SplitName seg = parse_split_name("seg_train");
  EXPECT_EQ(seg.split, "train");
  EXPECT_EQ(seg.rest, "seg");
  EXPECT_EQ(parse_split_name("GTSRB_Final_Test").rest, "gtsrb final");
  for (const char* name : {"toy_train", "test_tube", "invalid", "trains", "contest", "developer",
                           "latest", "training shoes", "data", "images", "2017", ""}) {
    EXPECT_EQ(split_of_name(name), "") << name;
  }
  EXPECT_EQ(parse_split_name("train_test").split, "") << "of two splits it is none";
}

}  // namespace
}  // namespace tandem::picture
