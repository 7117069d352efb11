// CIFAR-10's binary files and MNIST's IDX files.
#include <gmock/gmock.h>

#include <set>

#include "core/base/numbers/random.h"
#include "core/data/splits.h"
#include "tests/data/data_sets.h"
#include "tests/data/idx_bytes.h"
#include "tests/support/sparse_files.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t plane = 32 * 32;

// Record i is of class i % 10; its pixels are i, 2 i and 3 i.
std::string cifar_records(int first, int count) {
  std::string bytes;
  for (int i = first; i < first + count; ++i) {
    bytes += static_cast<char>(i % 10);
    for (int c = 1; c <= 3; ++c) bytes += std::string(plane, static_cast<char>(c * i));
  }
  return bytes;
}

// 28x28, picture i is all i, label i % 10.
std::string idx_pictures(int count) {
  std::string bytes = test::big_endian(0x803) + test::big_endian(static_cast<uint32_t>(count)) +
                      test::big_endian(28) + test::big_endian(28);
  for (int i = 0; i < count; ++i) bytes += std::string(28 * 28, static_cast<char>(i));
  return bytes;
}
std::string idx_labels(int count) {
  std::string bytes = test::big_endian(0x801) + test::big_endian(static_cast<uint32_t>(count));
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(i % 10);
  return bytes;
}

DatasetOptions raw_options(const std::filesystem::path& source,
                           const std::string& split = "train") {
  DatasetOptions options;
  options.source = source.string();
  options.split = split;
  options.phase = TANDEM_TEST;
  options.shape = {1, 0, 0, 0};
  return options;
}
Dataset open(const DatasetOptions& options) {
  return {test::data_registry(), options};
}
std::string refusal(const std::filesystem::path& source) {
  return message_of([&] { (void)open(raw_options(source)); });
}

std::vector<float> pixels_of(const Dataset& data, int64_t index, float* label = nullptr) {
  std::vector<float> pixels(static_cast<size_t>(element_count(data.shape())));
  float own = 0;
  std::string reason;
  EXPECT_EQ(data.get(index, 1, pixels.data(), label != nullptr ? label : &own, &reason),
            SampleStatus::good)
      << reason;
  return pixels;
}

TEST(Cifar10Binary, AFolderOfBatchesIsRecognizedWithItsClasses) {
  const TempFolder folder;
  (void)folder.write("data_batch_1.bin", cifar_records(0, 30));
  (void)folder.write("data_batch_2.bin", cifar_records(30, 20));
  (void)folder.write("test_batch.bin", cifar_records(50, 10));
  const Dataset train = open(raw_options(folder.path()));
  const Dataset val = open(raw_options(folder.path(), "val"));
  const Dataset test = open(raw_options(folder.path(), "test"));
  EXPECT_EQ(train.type_name(), "cifar10_binary");
  EXPECT_TRUE(equal(train.shape(), {1, 3, 32, 32}));
  EXPECT_EQ(train.size(), 40);
  EXPECT_EQ(val.size(), 10);
  EXPECT_EQ(test.size(), 10);
  EXPECT_EQ(train.class_names()[0], "airplane");
  std::set<std::string> names;
  for (const Dataset* data : {&train, &val, &test}) {
    for (int64_t i = 0; i < data->size(); ++i) names.insert(data->sample_name(i));
  }
  EXPECT_EQ(names.size(), 60U);
}

TEST(Cifar10Binary, AllOfATestFileIsItsTestSplit) {
  const TempFolder folder;
  const auto file = folder.write("test_batch.bin", cifar_records(0, 50));
  EXPECT_EQ(open(raw_options(file, "test")).size(), 50);
  EXPECT_EQ(open(raw_options(file)).size(), 40);
}

TEST(Cifar10Binary, ATestOfTrainingPicturesIsOfThoseHeldOutAndSaysSo) {
  const TempFolder folder;
  const auto file = folder.write("data_batch_1.bin", cifar_records(0, 50));
  for (const auto& source : {file, folder.path()}) {
    const Dataset data = open(raw_options(source, "test"));
    EXPECT_EQ(data.size(), 10);
    EXPECT_THAT(data.notes(),
                AllOf(HasSubstr("tested on the 20 % of every class"), HasSubstr("val_fraction=1")));
  }
}

TEST(Cifar10Binary, PixelsAreInTheOrderBlueGreenRed) {
  const TempFolder folder;
  (void)folder.write("data_batch_1.bin", cifar_records(0, 20));
  DatasetOptions options = raw_options(folder.path());
  options.parameters["val_fraction"] = "0";
  const Dataset data = open(options);
  float label = 0;
  for (int64_t i = 0; i < data.size(); ++i) {
    const std::vector<float> pixels = pixels_of(data, i, &label);
    const float red = pixels[2 * plane];
    EXPECT_EQ(pixels[0], 3 * red);
    EXPECT_EQ(pixels[plane], 2 * red);
    EXPECT_EQ(label, static_cast<float>(static_cast<int>(red) % 10));
    EXPECT_EQ(static_cast<float>(*data.label(i)), label);
  }
}

TEST(Cifar10Binary, MistakesAreReportedWithTheirByte) {
  const TempFolder folder;
  std::string bytes = cifar_records(0, 20);
  const auto file = folder.write("data_batch_1.bin", bytes.substr(0, bytes.size() - 100));
  EXPECT_THAT(refusal(folder.path()),
              AllOf(HasSubstr("data_batch_1.bin: byte 58387: record 19 is cut"),
                    HasSubstr("records have 3073")));
  EXPECT_THAT(refusal(file), HasSubstr("byte 58387"));
  bytes[3073 * 4] = 17;
  (void)folder.write("data_batch_1.bin", bytes);
  EXPECT_THAT(refusal(folder.path()),
              HasSubstr("byte 12292: record 4 has class 17, but there are classes 0 to 9"));
  (void)folder.write("data_batch_1.bin", "");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("data_batch_1.bin: is empty"));
}

TEST(Cifar10Binary, PicturesOfOneClassOnlyAreRefused) {
  const TempFolder folder;
  (void)folder.write("data_batch_1.bin", cifar_records(3, 1) + cifar_records(13, 1));
  EXPECT_THAT(refusal(folder.path()),
              HasSubstr("there is one class only, 'cat'; a classifier needs at least two"));
}

TEST(Cifar10Binary, AFileThatBecomesShorterCostsItsSamplesOnly) {
  const TempFolder folder;
  const auto file = folder.write("data_batch_1.bin", cifar_records(0, 50));
  const Dataset data = open(raw_options(folder.path()));
  std::filesystem::resize_file(file, 3073 * 10);
  int good = 0;
  std::vector<float> pixels(static_cast<size_t>(element_count(data.shape())));
  for (int64_t i = 0; i < data.size(); ++i) {
    float label = 0;
    std::string reason;
    if (data.get(i, 1, pixels.data(), &label, &reason) == SampleStatus::good) {
      ++good;
    } else {
      EXPECT_THAT(reason, HasSubstr("the file became shorter"));
    }
  }
  EXPECT_GT(good, 0);
  EXPECT_LE(good, 10);
}

TEST(Cifar10Binary, AFileThatIsNearlyAllAHoleIsRefused) {
  const TempFolder folder;
  const auto file = folder / "data_batch_1.bin";
  test::write_sparse(file, cifar_records(0, 12), uint64_t{3073} << 28);
  if (!test::is_sparse(file)) GTEST_SKIP() << "this file system tells of no holes";
  EXPECT_THAT(refusal(folder.path()),
              AllOf(HasSubstr("data_batch_1.bin: has 824902156288 bytes, of which "),
                    HasSubstr(" are on the disk"), HasSubstr("copy the whole file again")));
}

TEST(Cifar10Binary, AFileWithSomeHolesIsRead) {
  const TempFolder folder;
  test::write_sparse(folder / "data_batch_1.bin", cifar_records(0, 900), uint64_t{3073} * 1800);
  EXPECT_EQ(open(raw_options(folder.path())).size(), 1440);
}

TEST(MnistIdx, FilesThatAreNearlyAllAHoleAreRefused) {
  const TempFolder folder;
  constexpr uint32_t count = uint32_t{1} << 31;
  const std::string header = test::big_endian(0x803) + test::big_endian(count);
  const auto pictures = folder / "train-images-idx3-ubyte";
  const auto labels = folder / "train-labels-idx1-ubyte";
  test::write_sparse(pictures, header + test::big_endian(1) + test::big_endian(1),
                     16 + uint64_t{count});
  if (!test::is_sparse(pictures)) GTEST_SKIP() << "this file system tells of no holes";
  EXPECT_THAT(refusal(folder.path()),
              HasSubstr("train-images-idx3-ubyte: has 2147483664 bytes, of which "));
  (void)folder.write("train-images-idx3-ubyte", idx_pictures(20));
  test::write_sparse(labels, test::big_endian(0x801) + test::big_endian(count),
                     8 + uint64_t{count});
  EXPECT_THAT(refusal(folder.path()), HasSubstr("2147483648 labels for the 20 pictures"));
}

// Their labels are read in more than one piece.
TEST(MnistIdx, AMillionAndMorePicturesHaveTheirLabels) {
  const TempFolder folder;
  constexpr uint32_t count = (1 << 20) + 1000;
  const std::string header = test::big_endian(count) + test::big_endian(1) + test::big_endian(1);
  (void)folder.write("t10k-images-idx3-ubyte",
                     test::big_endian(0x803) + header + std::string(count, 'x'));
  (void)folder.write("t10k-labels-idx1-ubyte", idx_labels(count));
  DatasetOptions options = raw_options(folder / "t10k-images-idx3-ubyte", "test");
  const Dataset data = open(options);
  ASSERT_EQ(data.size(), count);
  for (int64_t i = 0; i < data.size(); i += 999) EXPECT_EQ(data.label(i), i % 10) << i;
}

TEST(MnistIdx, PicturesOfOneClassOnlyAreRefused) {
  const TempFolder folder;
  (void)folder.write("train-images-idx3-ubyte", idx_pictures(1));
  (void)folder.write("train-labels-idx1-ubyte", idx_labels(1));
  EXPECT_THAT(refusal(folder.path()), HasSubstr("there is one class only, "));
}

TEST(MnistIdx, AFolderIsRecognizedAndGrayStaysGray) {
  const TempFolder folder;
  (void)folder.write("train-images-idx3-ubyte", idx_pictures(50));
  (void)folder.write("train-labels-idx1-ubyte", idx_labels(50));
  (void)folder.write("t10k-images.idx3-ubyte", idx_pictures(20));
  (void)folder.write("t10k-labels.idx1-ubyte", idx_labels(20));
  const Dataset train = open(raw_options(folder.path()));
  EXPECT_EQ(train.type_name(), "mnist_idx");
  EXPECT_TRUE(equal(train.shape(), {1, 1, 28, 28}));
  EXPECT_EQ(train.size(), 40);
  EXPECT_EQ(train.class_count(), 10);
  EXPECT_EQ(open(raw_options(folder.path(), "test")).size(), 20);
  for (int64_t i = 0; i < train.size(); ++i) {
    EXPECT_EQ(static_cast<int64_t>(pixels_of(train, i)[400]) % 10, train.label(i));
  }
  DatasetOptions color = raw_options(folder.path());
  color.shape.c = 3;
  const Dataset three = open(color);
  EXPECT_TRUE(equal(three.shape(), {1, 3, 28, 28}));
  EXPECT_EQ(pixels_of(three, 7)[0], pixels_of(three, 7)[2 * 28 * 28]);
}

TEST(MnistIdx, TheFileOfPicturesMayBeNamedItself) {
  const TempFolder folder;
  const auto pictures = folder.write("emnist-images-idx3-ubyte", idx_pictures(30));
  EXPECT_THAT(refusal(pictures), HasSubstr("emnist-labels-idx1-ubyte: cannot be read"));
  (void)folder.write("emnist-labels-idx1-ubyte", idx_labels(30));
  EXPECT_EQ(open(raw_options(pictures)).size(), 20);
}

TEST(MnistIdx, AllOfATestFileIsItsTestSplit) {
  for (const char* name : {"t10k-%-idx#-ubyte", "T10K-%.idx#-ubyte", "kmnist_test_%-idx#"}) {
    const TempFolder folder;
    const auto named = [&](const char* kind, const char* dimensions) {
      std::string text = name;
      text.replace(text.find('#'), 1, dimensions);
      return text.replace(text.find('%'), 1, kind);
    };
    const auto pictures = folder.write(named("images", "3"), idx_pictures(30));
    (void)folder.write(named("labels", "1"), idx_labels(30));
    const Dataset test = open(raw_options(pictures, "test"));
    EXPECT_EQ(test.size(), 30) << name;
    EXPECT_THAT(test.notes(), HasSubstr("is a test file by its name: tested on all pictures"));
  }
}

TEST(MnistIdx, TrainingOnATestFileHoldsOutAPartAndSaysWhatItIs) {
  const TempFolder folder;
  const auto pictures = folder.write("t10k-images-idx3-ubyte", idx_pictures(50));
  (void)folder.write("t10k-labels-idx1-ubyte", idx_labels(50));
  const Dataset train = open(raw_options(pictures));
  EXPECT_EQ(train.size(), 40);
  EXPECT_EQ(open(raw_options(pictures, "val")).size(), 10);
  EXPECT_EQ(train.notes(),
            "'t10k-images-idx3-ubyte' is a test file by its name, all of which is tested; 20 % of "
            "every class are held out (seed 1)");
}

TEST(MnistIdx, AnAuditOfATestFileDoesNotCountItsPicturesTwice) {
  const TempFolder folder;
  const auto pictures = folder.write("t10k-images-idx3-ubyte", idx_pictures(50));
  (void)folder.write("t10k-labels-idx1-ubyte", idx_labels(50));
  const std::vector<NamedSplit> splits =
      open_splits(test::data_registry(), pictures.string(), {}, 1, {1, 0, 0, 0});
  ASSERT_EQ(splits.size(), 2U);
  EXPECT_EQ(splits[1].name, "val");
}

TEST(MnistIdx, ATestOfAPartSaysSoAndHowToTestAll) {
  const TempFolder folder;
  const auto pictures = folder.write("latest-images-idx3-ubyte", idx_pictures(50));
  (void)folder.write("latest-labels-idx1-ubyte", idx_labels(50));
  DatasetOptions options = raw_options(pictures, "test");
  const Dataset part = open(options);
  EXPECT_EQ(part.size(), 10);
  EXPECT_EQ(part.notes(),
            "no test file: tested on the 20 % of every class that training holds out (seed 1); "
            "--data-option val_fraction=1 tests all pictures");
  options.parameters["val_fraction"] = "1";
  const Dataset all = open(options);
  EXPECT_EQ(all.size(), 50);
  EXPECT_EQ(all.notes(), "no test file: tested on all pictures");
}

TEST(MnistIdx, MistakesAreReportedWithTheirByte) {
  const TempFolder folder;
  const auto say = [&](const std::string& pictures, const std::string& labels) {
    (void)folder.write("train-images-idx3-ubyte", pictures);
    (void)folder.write("train-labels-idx1-ubyte", labels);
    return refusal(folder.path());
  };
  const std::string pictures = idx_pictures(20), labels = idx_labels(20);
  EXPECT_THAT(say(pictures.substr(0, 7), labels), HasSubstr("byte 7: ends within its header"));
  EXPECT_THAT(say(labels, labels), HasSubstr("byte 0: begins with 2049"));
  EXPECT_THAT(say(pictures.substr(0, 1000), labels),
              HasSubstr("byte 1000: the file has 1000 bytes, but its header asks for 15696"));
  EXPECT_THAT(say(pictures + "x", labels), HasSubstr("byte 15696"));
  EXPECT_THAT(say(test::big_endian(0x803) + test::big_endian(0xffffffff) + test::big_endian(28) +
                      test::big_endian(28),
                  labels),
              HasSubstr("its header asks for 3367254359296"));
  EXPECT_THAT(say(test::big_endian(0x803) + test::big_endian(1) + test::big_endian(0xffffffff) +
                      test::big_endian(0xffffffff),
                  labels),
              HasSubstr("byte 8: pictures of 4294967295x4294967295"));
  EXPECT_THAT(
      say(test::big_endian(0x803) + test::big_endian(1) + test::big_endian(0) + test::big_endian(4),
          labels),
      HasSubstr("byte 8"));
  EXPECT_THAT(say(pictures, idx_labels(19)), HasSubstr("byte 4: 19 labels for the 20 pictures"));
  EXPECT_THAT(say(pictures, labels.substr(0, 20)), HasSubstr("byte 20: the file has 20 bytes"));
}

TEST(MnistIdx, ACompressedFileIsRefusedWithAFix) {
  const TempFolder folder;
  (void)folder.write("train-images-idx3-ubyte.gz", "\x1f\x8b");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("gunzip"));
}

TEST(RawPictures, RandomBytesAreRefusedOrRead) {
  const TempFolder folder;
  Random random(3, 4);
  const std::string pictures = idx_pictures(20), labels = idx_labels(20),
                    cifar = cifar_records(0, 12);
  const auto damaged = [&](std::string bytes, size_t front) {
    for (uint32_t k = random.below(4); k < 4; ++k) {
      bytes[random.below(static_cast<uint32_t>(std::min(front, bytes.size())))] =
          static_cast<char>(random.below(256));
    }
    if (random.below(4) == 0) bytes.resize(random.below(static_cast<uint32_t>(bytes.size())));
    return bytes;
  };
  for (int i = 0; i < 1000; ++i) {
    (void)folder.write("idx/train-images-idx3-ubyte", damaged(pictures, 16));
    (void)folder.write("idx/train-labels-idx1-ubyte", damaged(labels, 30));
    (void)folder.write("cifar/data_batch_1.bin", damaged(cifar, 10000));
    for (const char* name : {"idx", "cifar"}) {
      const std::string message = message_of([&] {
        const Dataset data = open(raw_options(folder / name));
        std::vector<float> pixels(static_cast<size_t>(element_count(data.shape())));
        float label = 0;
        std::string reason;
        (void)data.get(data.size() - 1, 1, pixels.data(), &label, &reason);
      });
      if (!message.empty()) {
        EXPECT_THAT(message, HasSubstr("data '")) << message;
      }
    }
  }
}

}  // namespace
}  // namespace tandem
