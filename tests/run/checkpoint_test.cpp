#include "core/run/folder/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "tests/support/checksums.h"
#include "tests/support/message_of.h"
#include "tests/support/sparse_files.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

Net small_net(int64_t outputs = 3) {
  Net net;
  net.name = "small";
  net.weights.push_back({"score.weight",
                         0,
                         {outputs, 5, 1, 1},
                         {},
                         5,
                         outputs,
                         TANDEM_TRAINED,
                         1,
                         1,
                         0,
                         outputs * 5});
  net.weights.push_back(
      {"score.bias", 0, {outputs, 1, 1, 1}, {}, 5, outputs, TANDEM_TRAINED, 1, 1, 64, outputs});
  net.weight_floats = 80;
  return net;
}

// Values only where arrays are: the padding between them is not kept.
Checkpoint checkpoint_at(const Net& net, int64_t step) {
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.weights.assign(80, 0.0F);
  checkpoint.state.assign(80, 0.0F);
  for (const WeightArray& weight : net.weights) {
    for (int64_t i = 0; i < weight.count; ++i) {
      const auto at = static_cast<size_t>(weight.offset + i);
      checkpoint.weights[at] = static_cast<float>(step * 1000 + weight.offset + i);
      checkpoint.state[at] = -checkpoint.weights[at];
    }
  }
  checkpoint.metadata["seed"] = "9";
  return checkpoint;
}

class Checkpoints : public testing::Test {
 protected:
  [[nodiscard]] fs::path file(const char* name) const { return folder_.path() / name; }
  void save(int64_t step) {
    write_checkpoint(folder_.path(), "last", net_, checkpoint_at(net_, step));
  }
  // Leaves the new state in place, the old weights, and the new weights complete beside them.
  void kill_between_renames(const std::string& name, const Checkpoint& old,
                            const Checkpoint& other) {
    const std::string weights = name + ".safetensors";
    write_checkpoint(folder_.path(), name, net_, old);
    fs::copy(folder_.path() / weights, file("old"));
    write_checkpoint(folder_.path(), name, net_, other);
    fs::rename(folder_.path() / weights, folder_.path() / (weights + ".new"));
    fs::rename(file("old"), folder_.path() / weights);
  }
  Checkpoint load() { return read_checkpoint(folder_.path(), "last", net_, true); }
  test::TempFolder folder_;
  Net net_ = small_net();
};

TEST_F(Checkpoints, ReturnWeightsStateAndMetadataExactly) {
  save(5);
  const Checkpoint read = load();
  const Checkpoint written = checkpoint_at(net_, 5);
  EXPECT_EQ(read.step, 5);
  EXPECT_EQ(read.weights, written.weights);
  EXPECT_EQ(read.state, written.state);
  EXPECT_EQ(read.metadata.at("seed"), "9");
}

TEST_F(Checkpoints, OfAnyNameAreCompletedAfterAKillBetweenTheTwoRenames) {
  for (const char* name : {"last", "best"}) {
    kill_between_renames(name, checkpoint_at(net_, 5), checkpoint_at(net_, 6));
  }
  complete_pairs(folder_.path());
  for (const char* name : {"last", "best"}) {
    const Checkpoint read = read_checkpoint(folder_.path(), name, net_, true);
    EXPECT_EQ(read.step, 6) << name;
    EXPECT_EQ(read.weights, checkpoint_at(net_, 6).weights) << name;
  }
}

// As of a run that was resumed on other devices.
TEST_F(Checkpoints, OfTheSameStepAreCompletedToo) {
  Checkpoint other = checkpoint_at(net_, 5);
  other.weights[0] = 1.5F;
  other.metadata["epoch_sums"] = "1.5";
  kill_between_renames("best", checkpoint_at(net_, 5), other);
  complete_pairs(folder_.path());
  EXPECT_EQ(read_checkpoint(folder_.path(), "best", net_, true).weights, other.weights);
}

TEST_F(Checkpoints, AKillBetweenTheFirstRenamesLeavesNoneUntilItIsCompleted) {
  save(5);
  fs::rename(file("last.safetensors"), file("last.safetensors.new"));
  EXPECT_FALSE(has_checkpoint(folder_.path(), "last"));
  complete_pairs(folder_.path());
  EXPECT_TRUE(has_checkpoint(folder_.path(), "last"));
  EXPECT_EQ(load().step, 5);
}

TEST_F(Checkpoints, AKillBeforeTheFirstRenameLeavesTheOldPair) {
  save(5);
  const std::string half = "half of a file";
  for (const char* name : {"last.safetensors.new", "last.state.safetensors.new"}) {
    write_text_file(file(name), half);
  }
  complete_pairs(folder_.path());
  EXPECT_EQ(load().step, 5);
}

TEST_F(Checkpoints, OtherNamesTakeNoSpaceAndStay) {
  write_checkpoint(folder_.path(), "last", net_, checkpoint_at(net_, 5), {"best", "at_5"});
  for (const char* name : {"last.safetensors", "last.state.safetensors"}) {
    EXPECT_EQ(fs::hard_link_count(file(name)), 3U);
  }
  save(6);
  EXPECT_EQ(load().step, 6);
  for (const char* name : {"best", "at_5"}) {
    EXPECT_EQ(read_checkpoint(folder_.path(), name, net_, true).step, 5);
  }
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_NE(entry.path().extension(), ".new");
  }
}

// As on a file system without hard links, on which the copy then fails.
TEST_F(Checkpoints, AreCompleteBeforeACopyUnderAnotherNameFails) {
  save(5);
  (void)folder_.write("at_6.safetensors.new/file", "");
  EXPECT_THAT(message_of([&] {
                write_checkpoint(folder_.path(), "last", net_, checkpoint_at(net_, 6), {"at_6"});
              }),
              HasSubstr("at_6.safetensors.new"));
  EXPECT_EQ(load().step, 6);
}

TEST_F(Checkpoints, ValuesThatAreNotFiniteAreRefused) {
  Checkpoint checkpoint = checkpoint_at(net_, 5);
  checkpoint.weights[64] = std::numeric_limits<float>::quiet_NaN();
  write_checkpoint(folder_.path(), "last", net_, checkpoint);
  EXPECT_THAT(message_of([&] { load(); }),
              testing::AllOf(HasSubstr("last.safetensors"), HasSubstr("'score.bias'"),
                             HasSubstr("not finite")));
}

TEST_F(Checkpoints, WithoutChecksumsAreRefused) {
  for (const char* name : {"last.safetensors", "last.state.safetensors"}) {
    save(5);
    test::remove_checksums(file(name));
    EXPECT_THAT(message_of([&] { load(); }),
                testing::AllOf(HasSubstr(name), HasSubstr("no checksum")));
  }
}

TEST_F(Checkpoints, FilesOfDifferentStepsAreRefused) {
  save(5);
  fs::copy(file("last.state.safetensors"), file("old"));
  save(6);
  fs::rename(file("old"), file("last.state.safetensors"));
  EXPECT_THAT(message_of([&] { load(); }), HasSubstr("do not belong together"));
}

TEST_F(Checkpoints, AnotherNetIsNamedWithBothShapes) {
  save(5);
  const Net other = small_net(2);
  EXPECT_THAT(message_of([&] { (void)read_checkpoint(folder_.path(), "last", other, true); }),
              testing::AllOf(HasSubstr("of another net"), HasSubstr("score.weight"),
                             HasSubstr("3x5"), HasSubstr("2x5")));
}

TEST_F(Checkpoints, AnArrayTheNetDoesNotHaveIsNamed) {
  save(5);
  Net other = net_;
  other.weights.pop_back();
  EXPECT_THAT(message_of([&] { (void)read_checkpoint(folder_.path(), "last", other, true); }),
              HasSubstr("has no array 'score.bias'"));
}

TEST_F(Checkpoints, RefuseAWeightsFileAsStateFile) {
  save(5);
  fs::copy(file("last.safetensors"), file("last.state.safetensors"),
           fs::copy_options::overwrite_existing);
  EXPECT_THAT(message_of([&] { load(); }), HasSubstr("no array 'score.weight.state0'"));
}

// It has some KB on the disk.
TEST_F(Checkpoints, OfATerabyteAreRefusedWithoutTakingMemory) {
  save(5);
  for (const std::string name : {"last.state.safetensors", "last.safetensors"}) {
    for (const std::string array : {"score.weight", "score.weight.state0", "more"}) {
      test::write_sparse_safetensors(file(name.c_str()), array, R"("step":"5","state_arrays":"1")");
      EXPECT_THAT(message_of([&] { (void)load(); }),
                  AllOf(HasSubstr(name), HasSubstr("is of another net")))
          << array;
    }
  }
}

// As of a net of many layers: what one looks up for each array must not be a list.
TEST_F(Checkpoints, OfManyArraysAreComplete) {
  constexpr int64_t arrays = 20'000;
  Net net;
  net.name = "deep";
  for (int64_t i = 0; i < arrays; ++i) {
    net.weights.push_back(
        {fmt::format("layer{}.bias", i), 0, {1, 1, 1, 1}, {}, 1, 1, TANDEM_TRAINED, 1, 1, i, 1});
  }
  net.weight_floats = arrays;
  Checkpoint written;
  written.step = 1;
  for (int64_t i = 0; i < arrays; ++i) written.weights.push_back(static_cast<float>(i));
  write_checkpoint(folder_.path(), "last", net, written);
  EXPECT_EQ(read_checkpoint(folder_.path(), "last", net, true).weights, written.weights);
}

}  // namespace
}  // namespace tandem
