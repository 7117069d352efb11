// Files with something wrong in them though every pixel is there, and forms that are not read.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include "core/data/audit/audit.h"
#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::encoded;
using test::get;
using test::gradient;
using test::noise;
using test::number_of;
using test::read;
using test::reason_of;
using test::Sample;
using test::size_of;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What is said of a file that is read; its pixels are those of `right`.
std::string remark_on(const std::string& name, const std::string& bytes, const std::string& right) {
  const TempFolder folder;
  DatasetOptions options = size_of(16, 20);
  options.source = folder.write(name, bytes).string();
  options.class_names = {"a", "b"};
  const Dataset data = test::open_images(options);
  const Sample sample = get(data), again = get(data);
  EXPECT_EQ(sample.status, SampleStatus::good) << sample.reason;
  EXPECT_EQ(sample.pixels, read(name, right).pixels) << name;
  EXPECT_EQ(again.pixels, sample.pixels);
  const std::vector<Remark> remarks = data.remarks();
  if (remarks.size() != 1) return "";
  EXPECT_EQ(remarks[0].count, 1);  // however often it is read
  return remarks[0].text;
}

TEST(WholeImages, BytesBeforeTheEndMarkerOfAJpegCostNothing) {
  const std::string jpeg = encoded(".jpg", noise(40, 32));
  const std::string pixels = jpeg.substr(0, jpeg.size() - 2), end = jpeg.substr(jpeg.size() - 2);
  for (const std::string& more :
       {std::string(20, '\x12'), std::string(300, '\x7f'), std::string(5000, '\0')}) {
    EXPECT_THAT(remark_on("a.jpg", pixels + more + end, jpeg), HasSubstr("bytes without meaning"));
  }
}

TEST(WholeImages, AJpegWithoutItsEndMarkerIsRead) {
  const std::string jpeg = encoded(".jpg", noise(40, 32));
  for (const size_t missing : {1U, 2U}) {
    EXPECT_THAT(remark_on("a.jpg", jpeg.substr(0, jpeg.size() - missing), jpeg),
                HasSubstr("no end marker"));
  }
  // Of a progressive one a whole scan may be missing.
  std::vector<uchar> bytes;
  cv::imencode(".jpg", noise(40, 32), bytes, {cv::IMWRITE_JPEG_PROGRESSIVE, 1});
  EXPECT_THAT(reason_of("a.jpg", std::string(bytes.begin(), bytes.end() - 2)),
              HasSubstr("truncated or damaged JPEG"));
}

TEST(WholeImages, BytesBehindTheEndOfAPictureAreNoMistake) {
  for (const char* extension : {".jpg", ".png", ".bmp", ".webp", ".ppm"}) {
    const std::string file = encoded(extension, noise(20, 16));
    EXPECT_EQ(remark_on(std::string("a") + extension, file + std::string(99, 'x'), file), "");
  }
}

// A chunk of text with a wrong check sum behind the header.
TEST(WholeImages, AWrongCheckSumOfATextInAPngCostsNothing) {
  const std::string png = encoded(".png", noise(20, 16));
  for (const char* name : {"tEXt", "iCCP", "tIME"}) {
    const std::string chunk = number_of(4, 4, false) + name + "abcd" + number_of(7, 4);
    EXPECT_THAT(remark_on("a.png", png.substr(0, 33) + chunk + png.substr(33), png),
                HasSubstr("check sum of what has no pixels"));
  }
}

TEST(WholeImages, APngWithoutItsEndIsReadIfNoPixelIsMissing) {
  const std::string png = encoded(".png", noise(20, 16));
  for (const size_t missing : {1U, 5U, 12U}) {
    EXPECT_EQ(remark_on("a.png", png.substr(0, png.size() - missing), png), "no end marker (PNG)");
  }
  EXPECT_THAT(reason_of("a.png", png.substr(0, png.size() - 14)), HasSubstr("truncated PNG"));
}

TEST(WholeImages, ABmpWithoutTheFillingOfItsLastRowIsRead) {
  const std::string bmp = encoded(".bmp", noise(21, 16));
  EXPECT_EQ(remark_on("a.bmp", bmp.substr(0, bmp.size() - 1), bmp),
            "no filling behind the last row (BMP)");
  EXPECT_THAT(reason_of("a.bmp", bmp.substr(0, bmp.size() - 2)), HasSubstr("truncated BMP"));
}

TEST(WholeImages, AWebpThatIsCutBehindItsPixelsIsRead) {
  const std::string whole = test::webp_with_exif(gradient(20, 16), test::exif_block(1));
  EXPECT_EQ(remark_on("a.webp", whole.substr(0, whole.size() - 6), whole),
            "shorter than it says, behind its pixels (WebP)");
}

TEST(WholeImages, AFormThatIsNotReadIsCalledThatWithTheToolThatConvertsIt) {
  using namespace std::string_literals;
  const std::string rest(400, '\0');
  const std::pair<std::string, const char*> forms[] = {
      {"\0\0\0\x0cJXL \r\n\x87\n"s + rest, "JPEG XL; convert it: djxl"},
      {"\xff\x0a"s + rest, "JPEG XL"},
      {"\0\0\0\x0cjP  \r\n\x87\n"s + rest, "JPEG 2000; convert it: opj_decompress"},
      {"\xff\xd8\xff\xf7"s + rest, "JPEG"},
      {"8BPS\0\1"s + rest, "PSD; convert it: magick"},
      {"<?xml version=\"1.0\"?>\n<svg width=\"9\"/>"s, "SVG; convert it: rsvg-convert"},
      {std::string(128, '\0') + "DICM" + rest, "DICOM; convert it: dcm2pnm"},
      {"FUJIFILMCCD-RAW "s + rest, "RAW; convert it"},
      {"II*\0\x10\0\0\0CR\2\0\0\0\0\0\0\0\0\0\0\0"s + rest, "RAW; convert it"},
      {"\x76\x2f\x31\x01"s + rest, "OpenEXR"},
      {"\0\0\0\x18"s + "ftypmp42" + rest, "a film"},
      {"<!DOCTYPE html><title>404 Not Found</title>"s, "a web page"},
      {"version https://git-lfs.github.com/spec/v1\n"s, "git lfs pull"},
      {"%PDF-1.7\n"s, "pdftoppm"},
      {"PK\3\4"s + rest, "an archive; unpack it"},
  };
  for (const auto& [bytes, what] : forms) {
    const std::string reason = reason_of("a.jpg", bytes);
    EXPECT_THAT(reason, HasSubstr(what));
    EXPECT_THAT(reason, testing::Not(HasSubstr("damaged"))) << what;
  }
}

// 12 bits, and a differential process: libjpeg-turbo reads neither to 8 bits.
TEST(WholeImages, AJpegOfAFormThatIsNotReadIsNotCalledDamaged) {
  std::string deep = encoded(".jpg", noise(20, 16)), differential = deep;
  const size_t frame = deep.find("\xff\xc0");
  deep[frame + 4] = 12;
  differential[frame + 1] = '\xc5';
  for (const std::string& jpeg : {deep, differential}) {
    EXPECT_THAT(reason_of("a.jpg", jpeg),
                AllOf(HasSubstr("a form of JPEG that is not read here"), HasSubstr("convert it")));
  }
}

TEST(WholeImages, ADigitalNegativeIsNotReadAsItsPreview) {
  std::string tiff = encoded(".tiff", gradient(20, 16));
  // The first tag becomes DNGVersion.
  const size_t directory = static_cast<unsigned char>(tiff[4]) |
                           static_cast<unsigned char>(tiff[5]) << 8 |
                           static_cast<unsigned char>(tiff[6]) << 16;
  tiff.replace(directory + 2, 2, "\x12\xc6");
  EXPECT_THAT(reason_of("a.tif", tiff), HasSubstr("a camera's RAW"));
}

// The header of a progressive JPEG of 10000x10000 and the header of a scan, again and again.
std::string many_scans(int side, int scans) {
  std::vector<uchar> bytes;
  cv::imencode(".jpg", noise(16, 16), bytes, {cv::IMWRITE_JPEG_PROGRESSIVE, 1});
  std::string jpeg(bytes.begin(), bytes.end());
  const size_t frame = jpeg.find("\xff\xc2"), scan = jpeg.find("\xff\xda");
  jpeg.replace(frame + 5, 4,
               number_of(static_cast<uint64_t>(side), 2, false) +
                   number_of(static_cast<uint64_t>(side), 2, false));
  const size_t length = static_cast<unsigned char>(jpeg[scan + 3]) + size_t{2};
  std::string result = jpeg.substr(0, scan);
  for (int i = 0; i < scans; ++i) result += jpeg.substr(scan, length) + std::string(2, '\0');
  return result + "\xff\xd9";
}

TEST(WholeImages, AJpegWithMoreScansThanProgramsWriteIsRefusedBeforeItIsDecoded) {
  for (const int scans : {100, 498, 880}) {
    EXPECT_THAT(reason_of("a.jpg", many_scans(9990, scans)),
                HasSubstr("too much work: " + std::to_string(scans) + " scans"));
  }
  // Of a small one they are no work, and what is wrong with it is found.
  EXPECT_THAT(reason_of("a.jpg", many_scans(16, 600)), HasSubstr("truncated or damaged JPEG"));
}

std::string deep_png(double greatest, int type = CV_16U) {
  cv::Mat deep;
  gradient(20, 16).convertTo(deep, type, greatest / 255);
  return encoded(type == CV_16U ? ".png" : ".tiff", deep);
}

struct WhiteCase {
  std::vector<double> greatest;
  int type;
  std::string white;  // chosen; "": none
};

class White : public testing::TestWithParam<WhiteCase> {};

TEST_P(White, IsOneForTheDataSet) {
  const TempFolder folder;
  int number = 0;
  for (const double greatest : GetParam().greatest) {
    for (const char* name : {"a", "b"}) {
      (void)folder.write(
          fmt::format("{}/{}.x.png", name, number++),
          greatest == 0 ? encoded(".png", gradient(20, 16)) : deep_png(greatest, GetParam().type));
    }
  }
  DatasetOptions options = test::image_options(folder.string());
  options.parameters["val_fraction"] = "0";
  const Dataset data = test::open_images(options);
  const auto chosen = data.chosen_parameters();
  EXPECT_EQ(chosen.contains("white") ? chosen.at("white") : "", GetParam().white);
}

INSTANTIATE_TEST_SUITE_P(
    Images, White,
    testing::Values(WhiteCase{{4000, 3000, 100}, CV_16U, "4095"},
                    WhiteCase{{4000, 4400}, CV_16U, "16383"}, WhiteCase{{900}, CV_16U, "1023"},
                    WhiteCase{{65535, 200}, CV_16U, "65535"}, WhiteCase{{0, 0}, CV_16U, ""},
                    WhiteCase{{0, 4000}, CV_16U, "4095"}, WhiteCase{{0.5, 1}, CV_32F, "1"},
                    WhiteCase{{0.5, 200}, CV_32F, "255"}));

TEST(WhiteOfImages, OnePixelDoesNotChangeHowDarkAPictureIs) {
  cv::Mat one(16, 20, CV_16UC1, cv::Scalar(4000)), other = one.clone();
  one.at<ushort>(0, 0) = 4095;
  other.at<ushort>(0, 0) = 4096;
  for (const char* extension : {".png", ".tiff", ".pgm"}) {
    const std::string name = std::string("a") + extension;
    const Sample a = read(name, encoded(extension, one)), b = read(name, encoded(extension, other));
    EXPECT_EQ(a.pixels.back(), b.pixels.back()) << extension;
    EXPECT_EQ(a.pixels.back(), 16) << extension;
  }
}

TEST(WhiteOfImages, WhatIsGivenCountsAndWhatIsAboveItIsSaid) {
  const TempFolder folder;
  DatasetOptions options = size_of(16, 20);
  options.source = folder.write("a.png", deep_png(4095)).string();
  options.class_names = {"a", "b"};
  options.parameters["white"] = "4095";
  const Dataset right = test::open_images(options);
  EXPECT_EQ(get(right).pixels, read("b.png", encoded(".png", gradient(20, 16))).pixels);
  EXPECT_THAT(right.remarks(), IsEmpty());
  options.parameters["white"] = "1023";
  const Dataset low = test::open_images(options);
  (void)get(low);
  ASSERT_EQ(low.remarks().size(), 1U);
  EXPECT_THAT(low.remarks()[0].text, HasSubstr("values above white"));
}

TEST(WhiteOfImages, APnmHasItsOwnInItsHeader) {
  const std::string twelve = "P5 20 16 4095\n", sixteen = "P5 20 16 65535\n";
  std::string low, high;
  for (int i = 0; i < 20 * 16; ++i) {
    low += number_of(4095, 2, false);
    high += number_of(65535, 2, false);
  }
  EXPECT_EQ(read("a.pgm", twelve + low).pixels, read("b.pgm", sixteen + high).pixels);
}

TEST(RemarksOnImages, AClassIsToldApartByWhatItsFilesDifferIn) {
  const TempFolder folder;
  const cv::Mat inks(16, 20, CV_8UC4, cv::Scalar(10, 200, 90, 255));
  test::fill_class(folder, "a", 6);
  for (int i = 0; i < 6; ++i) (void)folder.write(fmt::format("b/{}.jpg", i), test::cmyk_jpeg(inks));
  AuditOptions options;
  options.source = folder.string();
  std::string lines;
  for (const std::string& line : audit(test::data_registry(), options).suggestions) {
    lines += line + "\n";
  }
  EXPECT_THAT(lines, HasSubstr("class 'a' has color JPEG alone, and no other class has any"));
  EXPECT_THAT(lines, testing::Not(HasSubstr("has JPEG alone")));
}

TEST(RemarksOnImages, AreTheSameWordsForEveryFileAndCounted) {
  const TempFolder folder;
  cv::Mat alpha;
  cv::cvtColor(gradient(20, 16), alpha, cv::COLOR_BGR2BGRA);
  const auto words = [&](const std::string& name, const std::string& bytes) {
    DatasetOptions options = size_of(16, 20);
    options.source = folder.write(name, bytes).string();
    options.class_names = {"a", "b"};
    std::string reason;
    const auto stored = test::open_images(options).describe(0, &reason);
    return stored ? stored->remarks : std::vector<std::string>{reason};
  };
  const std::string dropped = "alpha is dropped; colors stay as they are stored";
  EXPECT_THAT(words("a.png", encoded(".png", alpha)), ElementsAre(dropped));
  EXPECT_THAT(words("a.tif", test::tiff_with_alpha(alpha)), ElementsAre(dropped));
  EXPECT_THAT(words("a.jpg", test::with_orientation(encoded(".jpg", gradient(20, 16)), 6)),
              ElementsAre(HasSubstr("turned upright")));
  EXPECT_THAT(words("b.png", deep_png(4095)), ElementsAre(HasSubstr("16 bits a channel")));
  EXPECT_THAT(words("c.jpg", test::cmyk_jpeg(alpha)), ElementsAre(HasSubstr("four inks")));
  EXPECT_THAT(words("d.jpg", encoded(".jpg", gradient(20, 16))), IsEmpty());
}

}  // namespace
}  // namespace tandem

#endif
