// Damaged files: the reason why each is left out, and nothing on stderr.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>

#include "tests/data/image_data.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::encoded;
using test::get;
using test::gradient;
using test::noise;
using test::open_images;
using test::read;
using test::reason_of;
using test::Sample;
using test::size_of;
using test::TempFolder;
using test::training;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(DamagedImages, ATruncatedJpegIsLeftOut) {
  const std::string jpeg = encoded(".jpg", noise(200, 150));
  for (const double share : {0.01, 0.1, 0.5, 0.9, 0.99}) {
    const auto length = static_cast<size_t>(share * static_cast<double>(jpeg.size()));
    EXPECT_THAT(reason_of("a.jpg", jpeg.substr(0, length)),
                HasSubstr("truncated or damaged JPEG: "))
        << share;
  }
}

TEST(DamagedImages, ATruncatedProgressiveJpegIsLeftOut) {
  std::vector<uchar> bytes;
  cv::imencode(".jpg", noise(200, 150), bytes, {cv::IMWRITE_JPEG_PROGRESSIVE, 1});
  EXPECT_THAT(reason_of("a.jpg",
                        std::string(bytes.begin(),
                                    bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2))),
              HasSubstr("truncated or damaged JPEG"));
}

TEST(DamagedImages, FlippedBitsNeitherCrashNorPrint) {
  // A JPEG may be valid after a flip. Every file must be a picture or refused.
  const std::string jpeg = encoded(".jpg", noise(60, 50));
  cv::RNG random(3);
  int skipped = 0;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 300; ++i) {
    std::string damaged = jpeg;
    for (int k = 0; k < 3; ++k) {
      damaged[static_cast<size_t>(random.uniform(0, static_cast<int>(jpeg.size())))] ^=
          static_cast<char>(1 << random.uniform(0, 8));
    }
    const Sample sample = read("a.jpg", damaged);
    if (sample.status == SampleStatus::skipped) {
      ++skipped;
      EXPECT_FALSE(sample.reason.empty());
    }
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  EXPECT_GT(skipped, 10);
}

TEST(DamagedImages, DamagedFilesOfOtherFormatsAreLeftOutWithoutOutput) {
  for (const char* extension : {".png", ".bmp", ".webp", ".tiff", ".ppm", ".pgm", ".pbm"}) {
    cv::Mat picture = noise(60, 50);
    const bool gray = extension[2] == 'g' || extension[2] == 'b';  // .pgm, .pbm
    if (gray) cv::cvtColor(picture, picture, cv::COLOR_BGR2GRAY);
    const std::string bytes = encoded(extension, picture);
    for (const size_t divisor : {2, 10, 60}) {
      EXPECT_FALSE(
          reason_of(std::string("a") + extension, bytes.substr(0, bytes.size() / divisor)).empty());
    }
  }
}

TEST(DamagedImages, AFileDecodesTheSameWhateverWasDecodedBefore) {
  const std::string jpeg = encoded(".jpg", noise(60, 50));
  const std::string tables_only = jpeg.substr(0, jpeg.find("\xff\xc0"));
  const Sample before = read("a.jpg", jpeg);
  EXPECT_EQ(read("a.jpg", tables_only).status, SampleStatus::skipped);
  EXPECT_EQ(read("a.jpg", jpeg).pixels, before.pixels);
  // Without its quantization tables it is not a picture, though the previous file had the same
  // ones.
  const size_t begin = jpeg.find("\xff\xdb"), end = jpeg.find("\xff\xc0");
  EXPECT_EQ(read("a.jpg", jpeg.substr(0, begin) + jpeg.substr(end)).status, SampleStatus::skipped);
}

TEST(DamagedImages, AFlippedBitInAPngIsLeftOut) {
  std::string png = encoded(".png", noise(60, 50));
  png[png.size() / 2] ^= 4;
  EXPECT_EQ(reason_of("a.png", png), "damaged PNG: a check sum is wrong");
}

TEST(DamagedImages, AnEmptyFileIsReportedAsEmpty) {
  EXPECT_EQ(reason_of("a.jpg", ""), "the file is empty (0 bytes)");
}

// Of large pictures one is decoded at a time.
TEST(DamagedImages, ALargeOneLetsOtherThreadsReadTheirs) {
  const std::string header = "P5 6000 6000 255\n";
  const std::string here = reason_of("a.pgm", header);
  std::string there;
  std::thread([&] { there = reason_of("a.pgm", header); }).join();
  EXPECT_EQ(here, there);
  EXPECT_THAT(here, HasSubstr("truncated PNM"));
}

// It would be large if it were whole.
TEST(DamagedImages, ALargeOneThatIsCutIsSaidToBeCut) {
  const std::string webp("RIFF\xff\xff\0\0WEBPVP8L\x10\0\0\0\x2f\x0e\xa7\xc3\x09\0\0\0\0\0\0\0",
                         32);
  EXPECT_THAT(reason_of("a.webp", webp), HasSubstr("truncated WebP"));
}

// OpenCV's reader of DICOM ends the process if the rest of the file is short, and GDAL tries all
// its readers.
TEST(DamagedImages, AFileThatIsMarkedAsAnotherFormatTooIsLeftOut) {
  using namespace std::string_literals;
  const auto marked = [](std::string file, size_t at, const char* mark) {
    file.resize(at);
    return file + mark + std::string(60, 'A');
  };
  EXPECT_THAT(reason_of("a.pgm", marked("P22 2  2\0\0"s, 128, "DICM")), HasSubstr("not an image"));
  const std::string webp = "RIFF\xc0\0\0\0WEBPVP8 zzzz"s + std::string(60, 'A');
  EXPECT_THAT(reason_of("a.webp", marked(webp, 128, "DICM")), HasSubstr("as DICOM, too"));
  EXPECT_THAT(reason_of("a.webp", marked(webp, 140, "DTED")), HasSubstr("as DTED, too"));
  const std::string rest(60, '\0');
  EXPECT_THAT(reason_of("a.bmp", "BM\0\0ftypavif"s + rest), HasSubstr("damaged AVIF"));
  // Not a brand that libheif is asked for; others may follow.
  EXPECT_THAT(reason_of("a.bmp", "BM\0\0ftypxxxx"s + rest), HasSubstr("as AVIF or HEIC, too"));
}

TEST(DamagedImages, TextNamedJpgIsNotAnImage) {
  EXPECT_THAT(reason_of("a.jpg", "I am not a picture at all, whatever my name says.\n"),
              HasSubstr("not an image"));
  EXPECT_THAT(reason_of("a.jpg", "x"), HasSubstr("not an image"));
}

TEST(DamagedImages, AGifWithoutAFrameIsLeftOut) {
  EXPECT_THAT(reason_of("a.jpg", std::string("GIF89a\x01\0\x01\0\0\0\0;", 14)),
              AnyOf(HasSubstr("it has no frame"), HasSubstr("built without giflib")));
}

#ifdef TANDEM_TEST_GIF
// One pixel with that index into a palette of two colors, at (left, 0).
std::string tiny_gif(int left, int index) {
  const int codes = 4 | index << 3 | 5 << 6;  // clear, the index, end; three bits each
  return std::string("GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,", 20) +
         static_cast<char>(left) + std::string("\0\0\0\x01\0\x01\0\0\x02\x02", 10) +
         static_cast<char>(codes & 255) + static_cast<char>(codes >> 8) + std::string("\0;", 2);
}

TEST(DamagedImages, AGifWhoseFrameIsOutsideOfThePictureIsLeftOut) {
  EXPECT_EQ(read("a.gif", tiny_gif(0, 1)).status, SampleStatus::good);
  EXPECT_THAT(reason_of("a.gif", tiny_gif(1, 1)), HasSubstr("outside of the picture"));
}

TEST(DamagedImages, AGifThatNamesAMissingColorIsLeftOut) {
  EXPECT_THAT(reason_of("a.gif", tiny_gif(0, 2)), HasSubstr("names a missing color"));
}
#endif

#ifdef TANDEM_TEST_HEIF
// Their headers say 24x24 and 64x64; their parts are 32767x32767.
TEST(DamagedImages, AHeicWhosePartsAreFarLargerThanItSaysIsLeftOut) {
  for (const char* name : {"overlay_32767.heic", "grid_32767.heic"}) {
    const auto file = test::source_folder() / "tests/fuzz/corpus/image" / name;
    EXPECT_THAT(reason_of("a.heic", test::read_text(file)), HasSubstr("damaged HEIC")) << name;
  }
}
#endif

TEST(DamagedImages, AMissingFileIsLeftOut) {
  const TempFolder folder;
  const Dataset data = training(folder, {});
  std::filesystem::remove(data.sample_name(0));
  EXPECT_THAT(get(data, 0).reason, HasSubstr("cannot be read: No such file"));
}

TEST(DamagedImages, AFileThatWasDamagedMeanwhileIsLeftOut) {
  const TempFolder folder;
  const std::string jpeg = encoded(".jpg", noise(100, 300));
  DatasetOptions options = size_of(50, 50);
  options.source = folder.write("a.jpg", jpeg).string();
  options.class_names = {"a"};
  const Dataset data = open_images(options);
  const Sample before = get(data);
  EXPECT_EQ(before.status, SampleStatus::good);
  // The crop is the centre. Only the end of the file is damaged, at the same length.
  std::string damaged = jpeg;
  damaged.replace(jpeg.size() * 9 / 10, jpeg.size() / 20, jpeg.size() / 20, '\xff');
  (void)folder.write("a.jpg", damaged);
  EXPECT_EQ(get(data).status, SampleStatus::skipped);
  EXPECT_EQ(get(data).status, SampleStatus::skipped);
  (void)folder.write("a.jpg", jpeg);
  EXPECT_EQ(get(data).pixels, before.pixels);
}

TEST(DamagedImages, HugePicturesAreRefusedByTheirHeader) {
  std::string jpeg = encoded(".jpg", gradient(20, 16));
  const size_t frame = jpeg.find(std::string("\xff\xc0\0\x11", 4));
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, std::string("\xf0\0\xf0\0", 4));
  EXPECT_THAT(reason_of("a.jpg", jpeg),
              AllOf(HasSubstr("too large: 61440x61440"), HasSubstr("100 megapixels")));
  std::string png = encoded(".png", gradient(20, 16));
  png.replace(16, 8, std::string("\0\0\xf0\0\0\0\xf0\0", 8));
  EXPECT_THAT(reason_of("a.png", png), HasSubstr("too large: 61440x61440"));
}

// A header without pixels: 16383x6000 is below the limit of megapixels.
TEST(DamagedImages, AWebpThatTakesMuchMemoryIsRefused) {
  const auto webp = [](const std::string& chunks) {
    const std::string body = "WEBP" + chunks + std::string(16, '\0');
    return "RIFF" + std::string(1, static_cast<char>(body.size())) + std::string(3, '\0') + body;
  };
  const std::string lossless("VP8L\x10\0\0\0\x2f", 9);
  const std::string rgb("\x0e\xa7\xc3\x09", 4), rgba("\x0e\xa7\xc3\x19", 4);
  EXPECT_THAT(reason_of("a.webp", webp(lossless + rgb)),
              HasSubstr("too large: a WebP of 9999x9999 and this form takes 668 MiB"));
  EXPECT_THAT(reason_of("a.webp", webp(lossless + rgba)), HasSubstr("takes 763 MiB"));
  const std::string lossy("VP8 \x10\0\0\0\0\0\0\x9d\x01\x2a\x0f\x27\x0f\x27", 18);
  EXPECT_THAT(reason_of("a.webp", webp(lossy)), Not(HasSubstr("too large")));
  const std::string extended("VP8X\x0a\0\0\0\x10\0\0\0\x0e\x27\0\x0e\x27\0", 18);
  EXPECT_THAT(reason_of("a.webp", webp(extended + lossy)), HasSubstr("takes 859 MiB"));
}

// OpenCV reads sizes of 32 bits from a header of 36 bytes on.
TEST(DamagedImages, ABmpCannotHideItsSize) {
  std::string bmp = encoded(".bmp", gradient(20, 16));
  bmp.replace(14, 12, std::string("\x24\0\0\0\x14\0\1\0\x10\x27\0\0", 12));
  EXPECT_THAT(reason_of("a.bmp", bmp), HasSubstr("too large: 65556x10000"));
}

// Their lower bits are dropped while they are decoded; all of them would take 900 MB of 100
// megapixels.
TEST(LargeImages, Of16BitsAreReadAs8) {
  const auto png = [](int value) {
    std::vector<uchar> bytes;
    cv::imencode(".png", cv::Mat(5000, 6500, CV_16U, cv::Scalar(value)), bytes,
                 {cv::IMWRITE_PNG_COMPRESSION, 1});
    return std::string(bytes.begin(), bytes.end());
  };
  const Sample sample = read("a.png", png(0x8001), size_of(1, 1, 1));
  ASSERT_EQ(sample.pixels.size(), 1U) << sample.reason;
  EXPECT_NEAR(sample.pixels[0], 0x80, 0.01);
  DatasetOptions low = size_of(1, 1, 1);
  low.parameters["white"] = "4095";
  EXPECT_THAT(read("a.png", png(0x801), low).reason,
              HasSubstr("too large: a picture of 16 bits whose white is 4095"));
}

int64_t max_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return 1024 * std::stoll(line.substr(6));
  }
  return 0;
}

// Resampling as Pillow does needs all pixels of the part; 36 megapixels take 108 MB.
TEST(LargeImages, BaselineJpegsDecodedWholeAreDecodedOneAtATime) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps memory that is freed";
#endif
  const TempFolder folder;
  DatasetOptions options = size_of(8, 8);
  options.source =
      folder.write("a.jpg", encoded(".jpg", cv::Mat(6000, 6000, CV_8UC3, cv::Scalar::all(90))))
          .string();
  options.class_names = {"a", "b"};
  options.parameters = {{"resampling", "pillow"}, {"resize", "8"}};
  const Dataset data = open_images(options);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak becomes what there is now
  const int64_t before = max_memory();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(get(data).status, SampleStatus::good); });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_GT(max_memory() - before, 100'000'000);
  EXPECT_LT(max_memory() - before, 200'000'000);
}

// With right check sums, so that only libpng sees it, which would write a line to stderr.
TEST(DamagedImages, APngOfAFormThatThereIsNotIsLeftOut) {
  const auto crc = [](const std::string& text) {
    uint32_t value = ~0U;
    for (const char c : text) {
      value ^= static_cast<uint8_t>(c);
      for (int k = 0; k < 8; ++k) value = (value & 1) != 0 ? 0xedb88320U ^ value >> 1 : value >> 1;
    }
    return test::number_of(~value, 4, false);
  };
  std::string png = encoded(".png", gradient(20, 16));
  png[24] = 3;  // bits of a channel
  png.replace(29, 4, crc(png.substr(12, 17)));
  EXPECT_THAT(reason_of("a.png", png), HasSubstr("names a form of pixels that there is not"));
  png[24] = 8;
  png.replace(29, 4, crc(png.substr(12, 17)));
  const size_t data = png.find("IDAT");
  png[data + 4] ^= 0x70;  // the method of compression
  const size_t bytes =
      static_cast<uint8_t>(png[data - 4]) << 24 | static_cast<uint8_t>(png[data - 3]) << 16 |
      static_cast<uint8_t>(png[data - 2]) << 8 | static_cast<uint8_t>(png[data - 1]);
  png.replace(data + 4 + bytes, 4, crc(png.substr(data, 4 + bytes)));
  EXPECT_THAT(reason_of("a.png", png), HasSubstr("damaged"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The exit code of a child process that does it.
template <class Function>
int in_child(const Function& function) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(function());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

constexpr int is_good = 0, is_left_out = 1, is_refused = 2, is_short = 3;  // refused: by an error

// How the file is read with so many more bytes of address space.
int read_with(const std::string& file, size_t more) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + more;
  const rlimit limits{limit, limit};
  ::setrlimit(RLIMIT_AS, &limits);
  try {
    DatasetOptions options = size_of(16, 20);
    options.source = file;
    options.class_names = {"a", "b"};
    return get(open_images(options)).status == SampleStatus::good ? is_good : is_left_out;
  } catch (const std::bad_alloc&) {
    return is_short;
  } catch (const std::exception& failure) {
    const std::string text = failure.what();
    return text.find("out of memory") != std::string::npos ? is_short : is_refused;
  }
}

// All in children, so that this process has no memory that a decoder could use again; the other
// tests, run before it by the same process, may leave some.
TEST(ImagesInLittleMemory, AreNotSaidToBeDamaged) {
  const TempFolder folder;
  for (const char* name : {"a.jpg", "a.png", "a.tiff", "a.webp"}) {
    const std::string file = (folder / name).string();
    const int edge = name == std::string("a.webp") ? 1500 : 3000;
    ASSERT_EQ(in_child([&] {
                return cv::imwrite(file, gradient(edge, edge), {cv::IMWRITE_JPEG_PROGRESSIVE, 1})
                           ? is_good
                           : is_refused;
              }),
              is_good);
    std::set<int> ends;
    for (size_t more = 2'000'000; more < 110'000'000; more += 3'000'000) {
      ends.insert(in_child([&] { return read_with(file, more); }));
    }
    ends.erase(is_short);
    ends.erase(is_refused);  // the plugin itself finds no room
    EXPECT_EQ(ends, std::set<int>{is_good}) << name;
  }
}
#endif

}  // namespace
}  // namespace tandem

#endif
