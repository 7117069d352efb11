// tandem-shapes: makes an image folder to train on: train/ and val/, with a folder for each of six
// drawn shapes.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <opencv2/imgcodecs.hpp>
#include <stdexcept>

#include "picture.h"

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string folder;
  int per_class = 800;
  int size = 64;
  uint64_t seed = 1;
};

void write_file(const fs::path& path, const std::vector<unsigned char>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error(fmt::format("cannot write '{}'", path.string()));
}

// `count` pictures of one class; `first` keeps those of two splits apart.
void write_class(const Options& options, const char* split, size_t index, int first, int count) {
  const fs::path folder = fs::path(options.folder) / split / tandem::shapes::class_names[index];
  fs::create_directories(folder);
  for (int i = first; i < first + count; ++i) {
    const cv::Mat picture =
        tandem::shapes::draw(index, options.size, options.seed, static_cast<uint64_t>(i));
    std::vector<unsigned char> bytes;
    cv::imencode(".jpg", picture, bytes, {cv::IMWRITE_JPEG_QUALITY, 92});
    write_file(folder / fmt::format("{:05}.jpg", i + 1), bytes);
  }
}

// Somebody's own pictures are not to be mixed with drawn ones.
void check_target(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  if (!fs::is_directory(folder)) {
    throw std::runtime_error(fmt::format("'{}' is a file, not a folder", folder.string()));
  }
  if (!fs::is_empty(folder)) {
    throw std::runtime_error(
        fmt::format("folder '{}' is not empty: name a new one", folder.string()));
  }
}

void write_images(const Options& options) {
  const size_t shapes = tandem::shapes::class_names.size();
  const int validation = (options.per_class + 3) / 4;
  check_target(options.folder);
  cv::setNumThreads(1);
  for (size_t i = 0; i < shapes; ++i) {
    write_class(options, "train", i, 0, options.per_class);
    write_class(options, "val", i, options.per_class, validation);
  }
  fmt::print("{}: {} images to train on and {} for validation, of {} shapes, {}x{} pixels\n",
             options.folder, options.per_class * static_cast<int>(shapes),
             validation * static_cast<int>(shapes), shapes, options.size, options.size);
}

int draw_shapes(int count, char** arguments) {
  Options options;
  CLI::App app("Draws an image folder to train on: six shapes in clutter, in train/ and val/.");
  app.add_option("OUT", options.folder, "The folder to make")->required();
  app.add_option("--per-class", options.per_class,
                 "Training images of each shape; a quarter as many for validation")
      ->check(CLI::Range(1, 99999))
      ->capture_default_str();
  app.add_option("--size", options.size, "Width and height in pixels")
      ->check(CLI::Range(16, 1024))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "The same seed draws the same images")
      ->capture_default_str();
  CLI11_PARSE(app, count, arguments);
  ::umask(::umask(0) | (S_IWGRP | S_IWOTH));  // no others may write to what is made
  write_images(options);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const int code = draw_shapes(count, arguments);
    if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
    return code;
  } catch (const std::exception& failure) {
    // fmt may throw where standard error is closed.
    std::fprintf(stderr, "tandem-shapes: %s\n", failure.what());
    return 1;
  }
}
