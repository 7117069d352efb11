// Opening image folders in tests.
#pragma once

#include <gmock/gmock.h>

#include "tests/data/data_sets.h"
#include "tests/data/image_files.h"

namespace tandem::test {

inline DatasetOptions image_options(const std::string& source, const std::string& split = "train") {
  DatasetOptions options;
  options.source = source;
  options.split = split;
  options.phase = split == "train" ? TANDEM_TRAIN : TANDEM_TEST;
  options.shape = {1, 3, 8, 8};
  return options;
}

inline Dataset open_images(const DatasetOptions& options) {
  return {data_registry(), options};
}
inline Dataset open_images(const TempFolder& folder, const std::string& split = "train") {
  return open_images(image_options(folder.string(), split));
}

inline std::string refusal(const DatasetOptions& options) {
  return message_of([&] { (void)open_images(options); });
}
inline std::string refusal(const TempFolder& folder, const std::string& split = "train") {
  return refusal(image_options(folder.string(), split));
}

struct Sample {
  SampleStatus status = SampleStatus::good;
  std::vector<float> pixels;
  float label = -7;
  std::string reason;
};

inline Sample get(const Dataset& data, int64_t index = 0, uint64_t seed = 1) {
  Sample sample;
  sample.pixels.resize(static_cast<size_t>(element_count(data.shape())));
  sample.status = data.get(index, seed, sample.pixels.data(), &sample.label, &sample.reason);
  return sample;
}

// Two classes of two gradients each, opened for training.
inline Dataset training(const TempFolder& folder, const Parameters& parameters) {
  fill_class(folder, "a", 2);
  fill_class(folder, "b", 2);
  DatasetOptions options = image_options(folder.string());
  options.parameters = parameters;
  return open_images(options);
}

// One file as a net with `options` reads it.
inline Sample read(const std::string& name, const std::string& bytes, DatasetOptions options) {
  const TempFolder folder;
  options.source = folder.write(name, bytes).string();
  options.split = "predict";
  options.class_names = {"a", "b"};
  return get(open_images(options));
}
inline DatasetOptions size_of(int64_t height, int64_t width, int64_t channels = 3) {
  DatasetOptions options = image_options("", "predict");
  options.shape = {1, channels, height, width};
  return options;
}
inline Sample read(const std::string& name, const std::string& bytes) {
  return read(name, bytes, size_of(16, 20));
}

// Why a file is left out, without a line on the standard streams.
inline std::string reason_of(const std::string& name, const std::string& bytes) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const Sample sample = read(name, bytes);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::IsEmpty()) << name;
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::IsEmpty()) << name;
  EXPECT_EQ(sample.status, SampleStatus::skipped) << name;
  EXPECT_EQ(sample.label, -1) << name;
  return sample.reason;
}

}  // namespace tandem::test
