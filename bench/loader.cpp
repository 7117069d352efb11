// bench_loader DATA [--crop 227] [--resize 256] [--threads 1,2] [--seconds 5] [--batch 128]
//   [--option name=value ...] [--bytes]
// Images per second that the loader prepares (read, decode, random crop, mirror, convert to
// floats), by number of decoder threads. DATA: as --data of tandem train.
// bench/loader_torchvision.py does the same with torchvision.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "core/base/error.h"
#include "core/data/loader/loader.h"
#include "core/plugin/registry.h"

namespace {

using namespace tandem;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string data;
  int64_t crop = 227, resize = 256, batch = 128;
  double seconds = 5;
  std::vector<int> threads{1, 2};
  std::vector<std::string> parameters;
  PixelForm pixels = PixelForm::floats;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Speed {
  double by_clock = 0;  // images/s
  double by_cpu_time =
      0;  // images per second of CPU time of all threads, valid on a busy machine, too
};

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

Speed images_per_second(const Dataset& data, const Options& options, int threads) {
  LoaderOptions loading;
  loading.batch = options.batch;
  loading.threads = threads;
  loading.bad_share_limit = 1;
  loading.pixels = options.pixels;
  Loader loader(data, loading,
                {[](int64_t bytes) { return std::malloc(static_cast<size_t>(bytes)); }, std::free});
  // The first batches of the ring have cold caches and empty buffers.
  for (int i = 0; i < ring_slots; ++i) loader.release(loader.next());
  const auto begin = Clock::now();
  const double cpu_begin = cpu_seconds();
  int64_t images = 0;
  while (seconds_since(begin) < options.seconds) {
    const Batch batch = loader.next();
    images += batch.samples;
    loader.release(batch);
  }
  const auto count = static_cast<double>(images);
  return {count / seconds_since(begin), count / (cpu_seconds() - cpu_begin)};
}

int run(const Options& options) {
  Registry registry = Registry::with_defaults();
  DatasetOptions opening;
  opening.source = options.data;
  opening.shape = {1, 3, options.crop, options.crop};
  opening.parameters = {
      {"resize", fmt::format("{}", options.resize)}, {"mirror", "true"}, {"mean", "104,117,123"}};
  for (const std::string& pair : options.parameters) {
    const size_t at = pair.find('=');
    if (at == std::string::npos) throw error("--option {}: it is written name=value", pair);
    opening.parameters[pair.substr(0, at)] = pair.substr(at + 1);
  }
  const Dataset data(registry, opening);
  const BatchLayout batch = make_batch_layout(options.batch, data.shape(), {}, options.pixels);
  fmt::print("{} ({}): {} images, crop {}, {} prefetched batches of {} bytes\n", options.data,
             data.type_name(), data.size(), options.crop, ring_slots, batch.bytes);
  double one = 0;
  for (const int threads : options.threads) {
    const Speed speed = images_per_second(data, options, threads);
    if (one == 0) one = speed.by_clock / threads;
    fmt::print("{} decoder threads: {:.0f} images/s ({:.2f} times one), {:.0f} by CPU second\n",
               threads, speed.by_clock, speed.by_clock / one, speed.by_cpu_time);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measures how fast images are prepared for a net"};
  Options options;
  app.add_option("data", options.data, "As --data of tandem train")->required();
  app.add_option("--crop", options.crop, "Pixels of a side")->capture_default_str();
  app.add_option("--resize", options.resize, "Shorter side before the crop; 0: the largest crop")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Decoder threads, a list")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "For each")->capture_default_str();
  app.add_option("--batch", options.batch, "Images")->check(CLI::PositiveNumber);
  app.add_option("--option", options.parameters, "Of the data set, name=value");
  app.add_flag_callback(
      "--bytes", [&options] { options.pixels = PixelForm::bytes; }, "Pixels as bytes");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "bench_loader: {}\n", failure.what());
    return 1;
  }
}
