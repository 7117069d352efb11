// Packs: they have the pictures of the folder, shrunk, and every damage is found.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "core/data/pack.h"
#include "datasets/picture/bytes.h"
#include "tests/data/image_data.h"
#include "tests/support/sparse_files.h"

namespace tandem {
namespace {

using test::get;
using test::message_of;
using test::open_images;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ImagePack : public testing::Test {
 protected:
  ImagePack() {
    for (int i = 0; i < 6; ++i) {
      const std::string name = std::to_string(i);
      (void)folder_.write("images/a/" + name + ".jpg",
                          test::encoded(".jpg", test::gradient(80, 60, 10 + 10 * i)));
      (void)folder_.write("images/b/" + name + ".png",
                          test::encoded(".png", test::gradient(30, 20, 130 + 10 * i)));
    }
    options_.source = (folder_ / "images").string();
    options_.file = (folder_ / "images.pack").string();
    options_.shorter_side = 32;
    options_.threads = 2;
  }
  PackResult write() { return pack(test::data_registry(), options_); }
  [[nodiscard]] DatasetOptions packed(const std::string& split = "train") const {
    return test::image_options(options_.file, split);
  }
  std::string refusal_of(const std::string& bytes) {
    (void)folder_.write("images.pack", bytes);
    return test::refusal(packed());
  }

  TempFolder folder_;
  PackOptions options_;
};

// The pack's pictures have 8 bits; those that are predicted later have 16.
TEST_F(ImagePack, KeepsWhatWasWhiteInItsPicturesOf16Bits) {
  cv::Mat deep(60, 80, CV_16UC1, cv::Scalar(2700));
  deep.at<ushort>(0, 0) = 4000;
  const std::string png = test::encoded(".png", deep);
  for (const char* name : {"deep/a/1.png", "deep/a/2.png", "deep/b/1.png", "deep/b/2.png"}) {
    (void)folder_.write(name, png);
  }
  options_.source = (folder_ / "deep").string();
  write();
  const Dataset train = open_images(packed());
  EXPECT_EQ(train.chosen_parameters().at("white"), "4095");
  DatasetOptions one = test::size_of(8, 8);
  one.class_names = {"a", "b"};
  one.source = (folder_ / "deep/a/1.png").string();
  one.parameters = train.chosen_parameters();
  EXPECT_NEAR(get(open_images(one)).pixels.back(), std::round(255 * 2700.0 / 4095), 0.01);
  EXPECT_NEAR(get(train).pixels.back(), get(open_images(one)).pixels.back(), 1);  // a JPEG
  DatasetOptions other = packed("val");
  other.parameters["white"] = "1023";
  EXPECT_THAT(test::refusal(other), AllOf(HasSubstr("white=4095"), HasSubstr("not white=1023")));
  other.parameters["white"] = "4095";
  EXPECT_EQ(open_images(other).size(), 2);
}

TEST_F(ImagePack, HasTheSplitsAndClassesOfTheFolder) {
  const PackResult result = write();
  EXPECT_THAT(result.splits, ElementsAre(std::pair<std::string, int64_t>("train", 10),
                                         std::pair<std::string, int64_t>("val", 2)));
  const Dataset train = open_images(packed()), val = open_images(packed("val"));
  EXPECT_EQ(train.type_name(), "image_pack");
  EXPECT_EQ(train.size(), 10);
  EXPECT_EQ(val.size(), 2);
  EXPECT_THAT(train.class_names(), ElementsAre("a", "b"));
  EXPECT_THAT(open_images(packed("test")).notes(), HasSubstr("no test images"));
  std::set<std::string> names;
  for (const Dataset* data : {&train, &val}) {
    for (int64_t i = 0; i < data->size(); ++i) {
      const test::Sample sample = get(*data, i);
      const std::string name = data->sample_name(i);
      names.insert(name);
      ASSERT_EQ(sample.status, SampleStatus::good) << sample.reason;
      // Blue is the number of the picture.
      const int number = name[name.size() - 5] - '0';
      const bool is_a = name.starts_with("a/");
      EXPECT_NEAR(sample.pixels[10], (is_a ? 10 : 130) + 10 * number, 3) << name;
      EXPECT_EQ(sample.label, is_a ? 0 : 1);
    }
  }
  EXPECT_EQ(names.size(), 12U);
}

TEST_F(ImagePack, WithoutValidationImagesHoldsSomeOut) {
  options_.parameters = {{"val_fraction", "0"}};
  EXPECT_THAT(write().splits, ElementsAre(std::pair<std::string, int64_t>("train", 12)));
  const Dataset train = open_images(packed()), val = open_images(packed("val"));
  EXPECT_EQ(train.size(), 10);
  EXPECT_TRUE(train.split_is_drawn());
  EXPECT_THAT(train.notes(), HasSubstr("20 % of every class are held out"));
  EXPECT_EQ(val.size(), 2);
  std::set<std::string> names;
  for (const Dataset* data : {&train, &val}) {
    for (int64_t i = 0; i < data->size(); ++i) names.insert(data->sample_name(i));
  }
  EXPECT_EQ(names.size(), 12U);
  DatasetOptions all = packed();
  all.parameters["val_fraction"] = "0";
  EXPECT_EQ(open_images(all).size(), 12);
}

TEST_F(ImagePack, LargePicturesAreShrunkAndSmallOnesKeptAsTheyAre) {
  (void)write();
  const Dataset data = open_images(packed());
  for (int64_t i = 0; i < data.size(); ++i) {
    std::string reason;
    const auto stored = data.describe(i, &reason);
    ASSERT_TRUE(stored) << reason;
    const bool is_a = std::string(data.sample_name(i)).starts_with("a/");
    EXPECT_EQ(stored->format, is_a ? "JPEG" : "PNG");
    EXPECT_EQ(stored->height, is_a ? 32 : 20);
    EXPECT_EQ(stored->width, is_a ? 43 : 30);
  }
}

TEST_F(ImagePack, TheSameOptionsGiveTheSameBytes) {
  (void)write();
  const std::string first = test::read_text(options_.file);
  options_.file = (folder_ / "again.pack").string();
  options_.threads = 1;
  (void)write();
  EXPECT_EQ(test::read_text(options_.file), first);
}

TEST_F(ImagePack, DamagedPicturesAreLeftOutAndReported) {
  (void)folder_.write("images/a/9.jpg", "no picture");
  const PackResult result = write();
  ASSERT_EQ(result.left_out.size(), 1U);
  EXPECT_THAT(result.left_out[0].name, HasSubstr("9.jpg"));
  EXPECT_EQ(open_images(packed()).size() + open_images(packed("val")).size(), 12);
}

TEST_F(ImagePack, AnExistingFileIsNeverReplaced) {
  (void)folder_.write("images.pack", "mine");
  EXPECT_THAT(message_of([&] { (void)write(); }), HasSubstr("exists: choose another name"));
  EXPECT_EQ(test::read_text(options_.file), "mine");
}

TEST_F(ImagePack, NothingIsLeftWhenStopped) {
  const std::atomic<bool> stop = true;
  options_.stop = &stop;
  EXPECT_THAT(message_of([&] { (void)write(); }), HasSubstr("was stopped"));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 0);
}

TEST_F(ImagePack, APackCannotBePackedAgain) {
  (void)write();
  options_.source = options_.file;
  options_.file += "2";
  EXPECT_THAT(message_of([&] { (void)write(); }), HasSubstr("cannot be packed"));
}

TEST_F(ImagePack, AFlippedBitInAPictureCostsThatPicture) {
  (void)write();
  std::string bytes = test::read_text(options_.file);
  bytes[200] ^= 1;
  (void)folder_.write("images.pack", bytes);
  int left_out = 0;
  for (const char* split : {"train", "val"}) {
    const Dataset data = open_images(packed(split));
    for (int64_t i = 0; i < data.size(); ++i) {
      const test::Sample sample = get(data, i);
      if (sample.status == SampleStatus::good) continue;
      ++left_out;
      EXPECT_THAT(sample.reason, HasSubstr("check sum at byte 64"));
    }
  }
  EXPECT_EQ(left_out, 1);
}

TEST_F(ImagePack, EveryCutAndEveryChangeOfHeaderAndIndexIsFound) {
  (void)write();
  const std::string good = test::read_text(options_.file);
  for (size_t length = 8; length < good.size(); length += 97) {
    EXPECT_THAT(refusal_of(good.substr(0, length)), HasSubstr("images.pack: byte ")) << length;
  }
  EXPECT_THAT(refusal_of(good + "x"), HasSubstr("pack the pictures again"));
  // As after a kill: the header is missing.
  EXPECT_FALSE(refusal_of(std::string(64, '\0') + good.substr(64)).empty());
  uint64_t index = 0;
  for (size_t i = 0; i < 8; ++i)
    index |= static_cast<uint64_t>(static_cast<uchar>(good[16 + i])) << 8 * i;
  for (size_t at = 8; at < good.size(); at = at == 47 ? index : at + 1) {
    std::string bytes = good;
    bytes[at] ^= 64;
    EXPECT_THAT(refusal_of(bytes), HasSubstr("images.pack: byte ")) << at;
  }
}

// ---- packs that no writer of ours has made

std::string little_endian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 255U);
  return text;
}
std::string text_of(const std::string& text) {
  return little_endian(text.size(), 4) + text;
}

// Of 64 bytes. `hash`: of the index, which follows the pictures and ends the file.
std::string header_of(uint64_t index_offset, uint64_t index_bytes, uint64_t hash = 0) {
  std::string header = "TANDEMPK" + little_endian(1, 8);
  for (const uint64_t value : {index_offset, index_bytes, hash, index_offset + index_bytes}) {
    header += little_endian(value, 8);
  }
  return header + std::string(16, '\0');
}

// The classes "a" and "b" and the split "train", before the number of pictures.
std::string beginning_of_index() {
  return little_endian(2, 8) + text_of("a") + text_of("b") + little_endian(1, 8) + text_of("train");
}
std::string entry_of(uint64_t offset, uint64_t bytes, uint64_t label, const std::string& name) {
  return little_endian(offset, 8) + little_endian(bytes, 4) + little_endian(label, 4) +
         std::string(12, '\0') + text_of(name);
}

// It has some KB on the disk, and its index would be the rest.
TEST_F(ImagePack, AnIndexOfATerabyteIsRefusedWithoutTakingMemory) {
  const std::string header = header_of(64, test::whole_terabyte - 64);
  test::write_sparse(options_.file, header + little_endian(1 << 30, 8), test::whole_terabyte);
  EXPECT_THAT(test::refusal(packed()),
              HasSubstr("images.pack: byte 76: a class has no name: pack the pictures again"));
  test::write_sparse(options_.file, header + beginning_of_index() + little_endian(1 << 30, 8),
                     test::whole_terabyte);
  EXPECT_THAT(test::refusal(packed()), HasSubstr("a picture has no name"));
  test::write_sparse(options_.file, header, test::whole_terabyte);
  EXPECT_THAT(test::refusal(packed()),
              HasSubstr("byte 88: the index continues after its last picture"));
}

TEST_F(ImagePack, APictureOfGigabytesIsRefusedWithoutTakingMemory) {
  constexpr uint64_t bytes = 0xffff0000U, end = 64 + bytes;
  const std::string index =
      beginning_of_index() + little_endian(1, 8) + entry_of(64, bytes, 0, "a/large.jpg");
  test::write_sparse(options_.file, header_of(end, index.size()), end);
  std::ofstream(options_.file, std::ios::binary | std::ios::app) << index;
  EXPECT_THAT(test::refusal(packed()),
              HasSubstr("picture 'a/large.jpg' has 4294901760 bytes, over 1 GiB"));
}

// Its index is read in more than one piece.
TEST_F(ImagePack, OfManyPicturesWithLongNamesIsRead) {
  constexpr uint64_t count = 3000;
  std::string index = beginning_of_index() + little_endian(count, 8);
  std::set<std::string> wanted, names;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name = std::string(1001, 'n') + std::to_string(i);
    index += entry_of(64, 8, i % 2, name);
    wanted.insert(name);
  }
  const std::vector<unsigned char> bytes(index.begin(), index.end());
  (void)folder_.write("images.pack",
                      header_of(72, index.size(), picture::hash_of(bytes)) + "pictures" + index);
  DatasetOptions all = packed();
  all.parameters["val_fraction"] = "0";
  const Dataset data = open_images(all);
  for (int64_t i = 0; i < data.size(); ++i) names.insert(data.sample_name(i));
  EXPECT_EQ(names, wanted);
}

TEST_F(ImagePack, OptionsOutOfRangeAreRefused) {
  options_.shorter_side = 3;
  EXPECT_THAT(message_of([&] { (void)write(); }),
              AllOf(HasSubstr("--shorter-side 3"), HasSubstr("from 8")));
  options_.shorter_side = 32;
  options_.quality = 101;
  EXPECT_THAT(message_of([&] { (void)write(); }), HasSubstr("--quality 101"));
}

}  // namespace
}  // namespace tandem

#endif
