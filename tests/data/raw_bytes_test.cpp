// Pixels as bytes of the data sets that hold bytes: CIFAR-10's and MNIST's.
#include <gmock/gmock.h>

#include <set>

#include "core/base/numbers/random.h"
#include "tests/data/byte_samples.h"
#include "tests/data/idx_bytes.h"
#include "tests/support/cifar_files.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::both_forms;
using test::expect_alike;
using test::Parameters;
using test::TempFolder;
using testing::HasSubstr;

class RawBytes : public testing::Test {
 protected:
  RawBytes() {
    test::make_cifar(folder_ / "cifar", 40, 10);
    constexpr uint32_t count = 40;
    Random random(5, 6);
    std::string pictures = test::big_endian(0x803) + test::big_endian(count) +
                           test::big_endian(28) + test::big_endian(28);
    std::string labels = test::big_endian(0x801) + test::big_endian(count);
    for (uint32_t i = 0; i < count * 28 * 28; ++i) {
      pictures += static_cast<char>(random.below(256));
    }
    for (uint32_t i = 0; i < count; ++i) labels += static_cast<char>(i % 10);
    (void)folder_.write("mnist/train-images-idx3-ubyte", pictures);
    (void)folder_.write("mnist/train-labels-idx1-ubyte", labels);
  }

  [[nodiscard]] Dataset open(const std::string& name, const Parameters& parameters,
                             Shape shape = {1, 0, 0, 0}, int32_t phase = TANDEM_TRAIN) const {
    DatasetOptions options;
    options.source = (folder_ / name).string();
    options.phase = phase;
    options.shape = shape;
    options.parameters = parameters;
    return {test::data_registry(), options};
  }

  TempFolder folder_;
};

TEST_F(RawBytes, BecomeExactlyTheFloatsIfPixelsOnlyMove) {
  const Parameters kinds[] = {
      {},
      {{"mean", "125.3,122.95,113.9"}, {"scale", "0.0078125"}},
      {{"mirror", "true"}, {"mean", "120.5"}, {"scale", "0.017"}},
      {{"color", "rgb"}, {"mean", "1,2,3"}, {"mirror", "true"}},
      {{"pad", "4"}, {"mirror", "true"}, {"mean", "104,117,123"}, {"scale", "0.01"}},
      {{"erase", "0.7"}, {"mean", "7,8,9"}, {"color", "rgb"}},
  };
  for (const Parameters& kind : kinds) {
    for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
      const std::string what = kind.empty() ? "plain" : kind.rbegin()->first;
      expect_alike(open("cifar", kind, {1, 0, 0, 0}, phase), 0, "cifar " + what);
      Parameters gray = kind;
      if (gray.contains("mean")) gray["mean"] = "31";
      expect_alike(open("mnist", gray, {1, 0, 0, 0}, phase), 0, "mnist " + what);
    }
  }
}

TEST_F(RawBytes, BecomeExactlyTheFloatsForTheNetsChannelsAndCrops) {
  expect_alike(open("cifar", {{"resize", "32"}}, {1, 3, 24, 20}), 0, "cropped");
  expect_alike(open("cifar", {{"mean", "100"}}, {1, 1, 32, 32}), 0, "gray");
  expect_alike(open("mnist", {{"mean", "10,20,30"}}, {1, 3, 28, 28}), 0, "three of gray");
}

TEST_F(RawBytes, AreRoundedIfPixelsAreResampled) {
  const Parameters kinds[] = {{{"resize", "40"}},
                              {{"crop_area", "0.2,1"}},
                              {{"rotation", "20"}},
                              {{"jitter", "0.4,0.4,0.4,0.1"}},
                              {{"randaugment", "2,9"}}};
  for (Parameters kind : kinds) {
    const std::string what = kind.begin()->first;
    kind["mean"] = "104.2,117.3,123.4";
    kind["scale"] = "0.02";
    const Dataset data = open("cifar", kind);
    expect_alike(data, test::half_a_step, what);
    double largest = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      largest = std::max(largest, both_forms(data, 0, seed).distance(data));
    }
    EXPECT_GT(largest, 0.3) << what << ": nothing was rounded";
  }
}

// Pixels with the mean are its nearest byte, as all other pixels that are not bytes.
TEST_F(RawBytes, HaveTheNearestByteOfAMean) {
  for (const char* with : {"pad", "erase"}) {
    const Dataset data = open("cifar", {{with, "1"}, {"mean", "104.3,117.5,122.6"}});
    expect_alike(data, test::half_a_step, with);
    std::set<double> distances;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      distances.insert(both_forms(data, 1, seed).distance(data));
    }
    EXPECT_NEAR(*distances.rbegin(), 0.5, 1e-4) << with;
  }
}

TEST_F(RawBytes, AreRefusedIfNoByteIsNearTheShownMean) {
  const Dataset padded = open("cifar", {{"pad", "2"}, {"mean", "300"}});
  EXPECT_FALSE(padded.has_bytes());
  EXPECT_EQ(padded.why_no_bytes(),
            "data set 'cifar10_binary' gives floats here: pad shows the mean of 300, which no byte "
            "from 0 to 255 can be");
  for (const auto& [what, value] :
       {std::pair{"pad", "2"}, {"rotation", "20"}, {"randaugment", "2,9"}, {"erase", "0.5"}}) {
    const Dataset shown = open("cifar", {{what, value}, {"mean", "-40"}});
    EXPECT_FALSE(shown.has_bytes()) << what;
    EXPECT_THAT(shown.why_no_bytes(), HasSubstr(std::string(what) + " shows the mean of -40"));
  }
  EXPECT_TRUE(open("cifar", {{"pad", "2"}, {"mean", "300"}}, {1, 0, 0, 0}, TANDEM_TEST).has_bytes())
      << "nothing is padded in testing";
  expect_alike(open("cifar", {{"mean", "300"}}), 0, "a mean that is not shown");
  expect_alike(open("cifar", {{"mean", "-40"}, {"randaugment", "2,0"}}), test::half_a_step,
               "operations without strength move nothing");
}

TEST_F(RawBytes, AreRefusedForAScaleOfZero) {
  const Dataset data = open("cifar", {{"scale", "0"}});
  EXPECT_FALSE(data.has_bytes());
  EXPECT_THAT(data.why_no_bytes(), HasSubstr("scale is 0; that of bytes is finite and not 0"));
  EXPECT_THAT(test::message_of([&] {
                (void)open("cifar", {{"mean", "104,nan,123"}});
              }),
              HasSubstr("mean is '104,nan,123', but must be numbers"));
}

TEST_F(RawBytes, OfAFileThatBecameShorterAreNearlyZero) {
  const Dataset data = open("mnist", {{"mean", "30.6"}});
  std::filesystem::resize_file(folder_ / "mnist/train-images-idx3-ubyte", 100);
  const test::BothForms both = both_forms(data, 20, 1);
  EXPECT_EQ(both.byte_status, SampleStatus::skipped);
  EXPECT_EQ(both.byte_reason, both.reason);
  EXPECT_EQ(both.byte_label, -1);
  EXPECT_THAT(both.bytes, testing::Each(31));
}

TEST(Bytes, AreRefusedByDataSetsOfFloats) {
  const Dataset data = test::scripted();
  EXPECT_FALSE(data.has_bytes());
  EXPECT_EQ(data.why_no_bytes(), "data set 'scripted' gives floats");
}

}  // namespace
}  // namespace tandem
