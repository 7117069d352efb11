#ifdef TANDEM_TEST_IMAGES
#include "tests/data/torture_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tests/data/image_files.h"
#include "tests/support/folders.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

const fs::path references = test::source_folder() / "tests/reference/images";

// Pictures drawn and judged by Pillow (tests/reference/draw_images.py).
// Why this build does not read files of this name, or "".
std::string missing_format(const std::string& name) {
#ifndef TANDEM_TEST_GIF
  if (name.ends_with(".gif")) return "built without giflib";
#endif
#ifndef TANDEM_TEST_HEIF
  if (name.ends_with(".avif") || name.ends_with(".heic")) return "built without libheif";
#endif
  static_cast<void>(name);
  return "";
}

std::vector<TortureCase> pictures_of_pillow() {
  std::vector<TortureCase> cases;
  for (const auto& entry : fs::directory_iterator(references)) {
    const std::string name = entry.path().filename().string();
    if (!fs::exists(references / (name + ".ppm"))) continue;
    // Two decoders of a lossy format, or two conversions from inks to colors, differ by rounding.
    const bool lossy = name.ends_with(".jpg") || name == "lossy.webp" || name == "color.avif" ||
                       name == "color.heic";
    cases.push_back({name, missing_format(name), name + ".ppm",
                     name == "cmyk.jpg" ? 2.5
                     : lossy            ? 1.0
                                        : 0.51});
  }
  std::sort(cases.begin(), cases.end(),
            [](const TortureCase& a, const TortureCase& b) { return a.name < b.name; });
  return cases;
}

std::string cut(const std::string& bytes, double share) {
  return bytes.substr(0, static_cast<size_t>(share * static_cast<double>(bytes.size())));
}

class Maker {
 public:
  Maker(const TempFolder& folder, std::string class_name)
      : folder_(folder), class_(std::move(class_name)) {}

  std::vector<TortureCase> make() {
    good_ones();
    cut_ones();
    damaged_ones();
    huge_ones();
    strange_names();
    no_files();
    never_images();
    return std::move(cases_);
  }

 private:
  std::string reference(const std::string& name) { return read_text(references / name); }
  fs::path write(const std::string& name, const std::string& bytes) {
    return folder_.write(class_ + "/" + name, bytes);
  }
  void add(const std::string& name, const std::string& bytes, const std::string& reason,
           const std::string& expected = "", double tolerance = 1) {
    (void)write(name, bytes);
    cases_.push_back({name, reason, expected, tolerance});
  }

  void good_ones() {
    for (const TortureCase& one : pictures_of_pillow()) {
      (void)write(one.name, reference(one.name));
      cases_.push_back(one);
    }
    add("jpeg_named.png", reference("progressive.jpg"), "", "progressive.jpg.ppm");
    add("png_named.jpeg", reference("color.png"), "", "color.png.ppm", 0.51);
    add("UPPER.JPG", reference("baseline_444.jpg"), "", "baseline_444.jpg.ppm");
    add("color16.png", encoded(".png", deep(257)), "");
    add("twelve_bits.png", encoded(".png", deep(4095.0 / 255)), "");
    add("color16.tiff", encoded(".tiff", deep(257)), "");
    add("one_pixel.png", encoded(".png", noise(1, 1)), "");
    add("one_row.jpg", encoded(".jpg", noise(500, 1)), "");
    add("junk_behind.jpg", reference("baseline_420.jpg") + std::string(1000, 'x'), "",
        "baseline_420.jpg.ppm");
    add("turned_to_nonsense.jpg", with_orientation(reference("baseline_444.jpg"), 77), "",
        "baseline_444.jpg.ppm");
  }

  static cv::Mat deep(double factor) {
    cv::Mat image;
    gradient(36, 24).convertTo(image, CV_16U, factor);
    return image;
  }

  void cut_ones() {
    for (const char* name : {"baseline_420.jpg", "progressive.jpg", "gray.jpg", "cmyk.jpg",
                             "turned_6.jpg", "restarts.jpg"}) {
      add(std::string("cut_") + name, cut(reference(name), 0.6), "truncated or damaged JPEG");
    }
    add("cut_at_the_end.jpg", cut(reference("baseline_444.jpg"), 0.995),
        "truncated or damaged JPEG");
    add("cut_in_the_header.jpg", reference("baseline_444.jpg").substr(0, 40),
        "truncated or damaged JPEG");
    for (const char* name : {"color.png", "palette.png", "gray16.png"}) {
      add(std::string("cut_") + name, cut(reference(name), 0.6), "truncated PNG");
    }
    add("cut.bmp", cut(reference("color.bmp"), 0.6), "truncated BMP");
    add("cut.webp", cut(reference("lossy.webp"), 0.6), "truncated WebP");
    add("cut.ppm", cut(reference("color.ppm"), 0.6), "truncated PNM");
    add("cut.tif", cut(reference("plain.tif"), 0.6), "damaged");
    add("cut_lzw.tif", cut(reference("lzw.tif"), 0.6), "damaged");
    for (const char* name : {"palette.gif", "interlaced.gif", "color.avif", "color.heic"}) {
      const std::string missing = missing_format(name);
      add(std::string("cut_") + name, cut(reference(name), 0.6),
          missing.empty() ? "truncated or damaged" : missing);
    }
    for (const char* name : {"empty.jpg", "empty.png", "empty.tif"}) add(name, "", "0 bytes");
  }

  void damaged_ones() {
    std::string png = reference("color.png");
    png[png.size() / 2] ^= 1;
    add("flipped_bit.png", png, "check sum");
    std::string jpeg = reference("baseline_444.jpg");
    const size_t begin = jpeg.find("\xff\xdb");
    jpeg.erase(begin, jpeg.find("\xff\xc0") - begin);
    add("no_tables.jpg", jpeg, "truncated or damaged JPEG");
    add("zeros.jpg", std::string(5000, '\0'), "not an image");
    add("text.jpg", "I am not a picture, whatever my name says.\n", "not an image");
    add("page.png", "<!doctype html><title>404 Not Found</title>", "not an image");
    const std::string missing = missing_format("animation.gif");
    add("animation.jpg", std::string("GIF89a\x01\0\x01\0\0\0\0;", 14),
        missing.empty() ? "it has no frame" : missing);
    add("movie.png",
        std::string("\0\0\0\x18"
                    "ftypmp42",
                    12) +
            std::string(200, 'm'),
        "not an image");
    add("marker_only.jpg", std::string("\xff\xd8\xff\xd9", 4), "truncated or damaged JPEG");
    add("nonsense.pgm", "P5 nonsense here\n", "damaged PNM");
    std::string bmp = reference("color.bmp");
    bmp[28] = 99;  // bits a pixel
    add("odd_depth.bmp", bmp, "truncated BMP");
    std::string tiff = reference("plain.tif");
    tiff.replace(4, 4, "\xff\xff\xff\x7f");
    add("no_directory.tif", tiff, "damaged");
  }

  void huge_ones() {
    std::string jpeg = reference("baseline_444.jpg");
    jpeg.replace(jpeg.find("\xff\xc0") + 5, 4, std::string("\xf0\0\xf0\0", 4));
    add("huge.jpg", jpeg, "too large: 61440x61440");
    std::string png = reference("color.png");
    png.replace(16, 8, std::string("\0\0\xf0\0\0\0\xf0\0", 8));
    add("huge.png", png, "too large: 61440x61440");
    std::string bmp = reference("color.bmp");
    bmp.replace(18, 8, std::string("\0\xf0\0\0\0\xf0\0\0", 8));
    add("huge.bmp", bmp, "too large: 61440x61440");
    std::string tiff = reference("plain.tif");
    const size_t width = tiff.find(std::string("\0\1\4\0\1\0\0\0", 8));
    if (width == std::string::npos) throw std::runtime_error("no width in plain.tif");
    tiff.replace(width + 8, 4, std::string("\0\0\0\x10", 4));
    add("huge.tif", tiff, "too large: 268435456x24");
    std::string webp = reference("lossless.webp");
    webp.replace(21, 4, "\xff\xff\xff\x0f");
    add("huge.webp", webp, "too large: 16384x16384");
    std::string gif = reference("palette.gif");
    gif.replace(6, 4, "\xff\xff\xff\xff");
    add("huge.gif", gif, "too large: 65535x65535");
    std::string avif = reference("color.avif");
    avif.replace(avif.find("ispe") + 8, 8, std::string("\0\0\xf0\0\0\0\xf0\0", 8));
    add("huge.avif", avif, "too large: 61440x61440");
    avif.replace(avif.find("ispe") + 8, 8, std::string(8, '\xff'));
    add("absurd.avif", avif, "too large: 4294967295x4294967295");
    add("huge.pgm", "P5 99999 99999 255\n", "too large: 99999x99999");
  }

  void strange_names() {
    std::string long_name(200, 'l');
    long_name += ".jpg";
    const std::string jpeg = reference("baseline_444.jpg");
    for (const std::string& name :
         {std::string("with space.jpg"), std::string("\xc3\xa9t\xc3\xa9 \xe7\x8c\xab.jpg"),
          std::string("caf\xe9.jpg"), std::string("a,b;\"c'.jpg"), std::string("percent%s%n.jpg"),
          std::string("-rf.jpg"), long_name}) {
      add(name, jpeg, "", "baseline_444.jpg.ppm");
    }
    add("nested/deeper/a.jpg", jpeg, "", "baseline_444.jpg.ppm");
  }

  void no_files() {
    const fs::path here = folder_ / class_;
    fs::create_directory(here / "folder.jpg");
    (void)write("folder.jpg/inside.jpg", reference("baseline_444.jpg"));
    cases_.push_back({"folder.jpg/inside.jpg", "", "baseline_444.jpg.ppm", 1});
    fs::create_symlink("baseline_444.jpg", here / "link.jpg");
    cases_.push_back({"link.jpg", "", "baseline_444.jpg.ppm", 1});
    fs::create_symlink("nowhere.jpg", here / "dangling.jpg");
    fs::create_symlink(".", here / "round_and_round");
    fs::create_symlink("self.jpg", here / "self.jpg");
    if (::mkfifo((here / "pipe.jpg").c_str(), 0600) != 0) throw std::runtime_error("no pipe");
    const fs::path locked = write("unreadable.jpg", reference("baseline_444.jpg"));
    fs::permissions(locked, fs::perms::none);
    // A test run by root can read it nevertheless.
    cases_.push_back({"unreadable.jpg", ::geteuid() == 0 ? "" : "cannot be read", "", 1});
  }

  void never_images() {
    for (const char* name : {".hidden.jpg", "Thumbs.db", "__MACOSX/._a.jpg", "notes.txt",
                             "labels.csv", "no_extension", "raw.CR2", "a.jpg.part"}) {
      (void)write(name, "no picture");
    }
  }

  const TempFolder& folder_;
  std::string class_;
  std::vector<TortureCase> cases_;
};

}  // namespace

std::vector<TortureCase> make_torture(const TempFolder& folder, const std::string& class_name) {
  return Maker(folder, class_name).make();
}

std::vector<std::string> contents_of(const fs::path& folder) {
  std::vector<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const fs::file_status status = entry.symlink_status();
    std::string line = entry.path().string() + ": ";
    if (fs::is_symlink(status)) {
      line += "-> " + fs::read_symlink(entry.path()).string();
    } else if (fs::is_regular_file(status)) {
      const bool readable = ::access(entry.path().c_str(), R_OK) == 0;
      line += readable ? read_text(entry.path()) : "locked";
      struct stat times {};
      (void)::stat(entry.path().c_str(), &times);
      line +=
          " " + std::to_string(times.st_mtim.tv_sec) + "." + std::to_string(times.st_mtim.tv_nsec);
    }
    all.push_back(line);
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace tandem::test
#endif
