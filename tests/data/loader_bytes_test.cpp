// Batches whose pixels are bytes, or floats converted from bytes.
#include <gmock/gmock.h>

#include "core/data/loader/loader.h"
#include "tests/data/batches.h"
#include "tests/data/data_sets.h"
#include "tests/support/cifar_files.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::evaluation;
using test::host_memory;
using test::message_of;
using test::take_all;
using test::TempFolder;
using testing::Each;
using testing::HasSubstr;

class LoaderBytes : public testing::Test {
 protected:
  LoaderBytes() { test::make_cifar(folder_.path(), 50, 10); }
  [[nodiscard]] Dataset open(test::Parameters parameters, const std::string& split = "train",
                             Shape shape = {1, 3, 32, 32}) const {
    parameters.insert({{"mean", "104.5,117.5,123.5"}, {"scale", "0.017"}});
    DatasetOptions options;
    options.source = folder_.string();
    options.shape = shape;
    options.split = split;
    options.phase = split == "train" ? TANDEM_TRAIN : TANDEM_TEST;
    options.parameters = std::move(parameters);
    return {test::data_registry(), options};
  }
  static LoaderOptions in_form(PixelForm form) {
    LoaderOptions options;
    options.batch = 6;
    options.pixels = form;
    return options;
  }
  // Labels, and pixels as floats, of some batches.
  static std::vector<test::Contents> of_bytes(const Dataset& data, const LoaderOptions& options,
                                              int count) {
    Loader loader(data, options, host_memory());
    std::vector<test::Contents> all;
    for (int i = 0; i < count; ++i) {
      const Batch batch = loader.next();
      const BatchLayout& layout = loader.layout();
      const auto* labels = reinterpret_cast<const float*>(batch.memory + layout.label_offset);
      const auto* bytes = reinterpret_cast<const uint8_t*>(batch.memory + layout.data_offset);
      test::Contents one{batch.number, batch.epoch, batch.samples, {}, {}};
      one.labels.assign(labels, labels + layout.rows);
      Shape all_rows = layout.sample;
      all_rows.n = layout.rows;
      one.pixels.resize(static_cast<size_t>(element_count(all_rows)));
      to_floats(bytes, all_rows, data.pixel_scale(), one.pixels.data());
      all.push_back(one);
      loader.release(batch);
    }
    return all;
  }
  TempFolder folder_;
};

TEST_F(LoaderBytes, TakeAQuarterOfTheMemoryAndMoveNothingElse) {
  const Shape sample{1, 3, 7, 7};
  const BatchLayout floats = make_batch_layout(5, sample, {{1, 2, 1, 1}});
  const BatchLayout bytes = make_batch_layout(5, sample, {{1, 2, 1, 1}}, PixelForm::bytes);
  EXPECT_EQ(floats.sample_bytes, 4 * 147);
  EXPECT_EQ(bytes.sample_bytes, 147);
  EXPECT_EQ(bytes.label_offset, floats.label_offset);
  EXPECT_EQ(bytes.data_offset, floats.data_offset);
  EXPECT_EQ(bytes.more_offsets[0], bytes.data_offset + 768);  // 735, to the next 64
  EXPECT_EQ(bytes.bytes, bytes.more_offsets[0] + 64);
  EXPECT_EQ(make_batch_layout(5, sample, {}, PixelForm::rounded).bytes,
            make_batch_layout(5, sample).bytes);
}

TEST_F(LoaderBytes, AreTheSameFloatsInEveryFormIfPixelsOnlyMove) {
  const Dataset data = open({{"mirror", "true"}});
  const auto floats = take_all(data, in_form(PixelForm::floats), 9);
  EXPECT_EQ(take_all(data, in_form(PixelForm::rounded), 9), floats);
  EXPECT_EQ(of_bytes(data, in_form(PixelForm::bytes), 9), floats);
}

// The bars have the mean.
TEST_F(LoaderBytes, AreTheSameFloatsBetweenBars) {
  for (const Shape shape : {Shape{1, 3, 32, 48}, Shape{1, 3, 48, 32}}) {
    const Dataset data = open({{"fit", "pad"}, {"mean", "104,117,123"}}, "val", shape);
    EXPECT_EQ(of_bytes(data, in_form(PixelForm::bytes), 2),
              take_all(data, in_form(PixelForm::floats), 2));
  }
}

TEST_F(LoaderBytes, AreTheSameAsRoundedOnesIfPixelsAreResampled) {
  const Dataset data = open({{"crop_area", "0.3,1"}, {"jitter", "0.3"}});
  const auto rounded = take_all(data, in_form(PixelForm::rounded), 9);
  EXPECT_EQ(of_bytes(data, in_form(PixelForm::bytes), 9), rounded);
  EXPECT_NE(take_all(data, in_form(PixelForm::floats), 9), rounded);
}

TEST_F(LoaderBytes, OfRowsWithoutASampleAreNearlyZero) {
  const Dataset data = open({});
  const int64_t filled = data.size() - 32;  // rows of the second batch
  LoaderOptions options = evaluation(32);
  options.pixels = PixelForm::bytes;
  const auto bytes = of_bytes(data, options, 2);
  options.pixels = PixelForm::rounded;
  EXPECT_EQ(take_all(data, options, 2), bytes);
  EXPECT_EQ(bytes[1].labels[size_t(filled)], -1);
  const std::vector<float> rest(bytes[1].pixels.begin() + filled * 3072, bytes[1].pixels.end());
  ASSERT_FALSE(rest.empty());
  EXPECT_LE(*std::max_element(rest.begin(), rest.end()), 0.5F * 0.017F);
  EXPECT_GE(*std::min_element(rest.begin(), rest.end()), -0.5F * 0.017F);
}

TEST_F(LoaderBytes, OfADamagedSampleAreListedAndChangeNoOther) {
  const Dataset data = open({});
  const auto whole = of_bytes(data, in_form(PixelForm::bytes), 1);
  std::filesystem::resize_file(folder_ / "data_batch_1.bin", 25 * 3073);
  for (const PixelForm form : {PixelForm::bytes, PixelForm::rounded}) {
    LoaderOptions options = in_form(form);
    options.batch = 40;
    options.bad_share_limit = 1;
    Loader loader(data, options, host_memory());
    const Batch batch = loader.next();
    EXPECT_LT(batch.samples, 40);
    EXPECT_EQ(loader.bad_samples().size(), static_cast<size_t>(40 - batch.samples));
    EXPECT_THAT(loader.bad_samples()[0].reason, HasSubstr("became shorter"));
    loader.release(batch);
  }
}

TEST_F(LoaderBytes, AreMixedAsFloats) {
  const Dataset data = open({});
  LoaderOptions options = in_form(PixelForm::floats);
  options.targets.wanted = true;
  options.targets.mixup = 0.4;
  const auto mixed = take_all(data, options, 4);
  options.pixels = PixelForm::rounded;
  EXPECT_EQ(take_all(data, options, 4), mixed);
  options.pixels = PixelForm::bytes;
  EXPECT_THAT(message_of([&] { Loader loader(data, options, host_memory()); }),
              HasSubstr("cannot be mixed"));
}

TEST_F(LoaderBytes, MayHaveTargetsForEachClass) {
  const Dataset data = open({});
  LoaderOptions options = in_form(PixelForm::bytes);
  options.targets.wanted = true;
  Loader loader(data, options, host_memory());
  const Batch batch = loader.next();
  const BatchLayout& layout = loader.layout();
  const auto* labels = reinterpret_cast<const float*>(batch.memory + layout.label_offset);
  const auto* targets = reinterpret_cast<const float*>(batch.memory + layout.more_offsets.back());
  for (int64_t row = 0; row < 6; ++row) {
    EXPECT_EQ(targets[row * 10 + static_cast<int64_t>(labels[row])], 1);
  }
  loader.release(batch);
}

TEST(LoaderOfFloats, RefusesBytesWithAReason) {
  const Dataset data = test::scripted();
  for (const PixelForm form : {PixelForm::bytes, PixelForm::rounded}) {
    LoaderOptions options = test::in_file_order(2);
    options.pixels = form;
    EXPECT_EQ(message_of([&] { Loader loader(data, options, host_memory()); }),
              "pixels as bytes: data set 'scripted' gives floats");
  }
}

}  // namespace
}  // namespace tandem
