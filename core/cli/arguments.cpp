#include "core/cli/arguments.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/numbers/shape.h"
#include "core/base/text/strings.h"
#include "core/cli/print.h"
#include "core/data/pixels.h"
#include "core/schedule/execution/capture.h"
#include "core/session/session.h"
#include "include/tandem/train.h"

namespace tandem::cli {
namespace {

// Whether --pixels leaves the choice to the program.
bool is_decided_here(const std::string& pixels) {
  return pixels.empty() || pixels == "auto";
}

}  // namespace

std::map<std::string, std::string> read_pairs(const std::vector<std::string>& texts,
                                              const char* option, const char* example) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    const size_t at = text.find('=');
    if (at == std::string::npos)
      throw error("{} {}: it must be name=value, e.g. {}", option, text, example);
    pairs[text.substr(0, at)] = text.substr(at + 1);
  }
  return pairs;
}

void add_state_options(Command& command, const std::string& prefix, const std::string& what,
                       NetState& state) {
  command.option("--" + prefix + "level N", &state.level,
                 "Level of the " + what + ", for layers with min_level or max_level");
  command
      .option("--" + prefix + "stage NAMES", &state.stages,
              "Stages of the " + what + ", for layers with stage or not_stage, e.g. a,b")
      .separator(',');
}

void write_output(const std::string& path, const std::string& text) {
  constexpr size_t beginning = 8;
  std::error_code ignored;
  std::string there(beginning, '\0');
  if (std::filesystem::is_regular_file(path, ignored)) {
    there.resize(InputFile(path).read(0, there.data(), beginning));
  } else {
    there.clear();
  }
  if (!there.empty() && text.compare(0, beginning, there) != 0) {
    throw error("'{}' exists and is another kind of file: choose another name", path);
  }
  write_text_file(path, text);
}

void add_precision_option(Command& command, std::string& precision, const std::string& standard) {
  command
      .option(
          "--precision float32|bfloat16|float16|tf32", &precision,
          fmt::format("Precision of activations and their gradients (default: {}); weights stay "
                      "float32. On devices that support them only: float16, whose gradients are "
                      "multiplied by a loss scale, and tf32, which is float32 with 11 significant "
                      "bits in products",
                      standard))
      .check([](const std::string& text) { (void)parse_precision(text); });
}

void add_pixels_option(Command& command, std::string& pixels, const std::string& standard) {
  command
      .option("--pixels auto|bytes|floats", &pixels,
              fmt::format("Form in which images travel to the devices: floats, bytes (a quarter of "
                          "the traffic; resized pixels are rounded), or auto (default): {}",
                          standard))
      .check(require_pixels_word);
}

std::string pixels_word(const SessionOptions& options) {
  return options.training_pixels == PixelForm::bytes ? "bytes" : "floats";
}

std::string pixels_text(const std::string& pixels, const SessionOptions& options) {
  if (options.training_pixels == PixelForm::rounded) {
    return "pixels: floats; the backend of the devices does not convert bytes\n";
  }
  const std::string word = pixels_word(options);
  if (!is_decided_here(pixels)) return fmt::format("pixels: {}\n", word);
  return fmt::format("pixels: {} by default (to change: --pixels {})\n", word,
                     word == "bytes" ? "floats" : "bytes");
}

void choose_made_up_pixels(const std::string& pixels, bool prefers_bytes, SessionOptions& options) {
  constexpr int64_t most_channels = 4;
  const bool fits = options.data.c <= most_channels;
  if (pixels == "bytes" && !fits) {
    throw error("--pixels bytes: images have 1 to {} channels, the net takes {}", most_channels,
                options.data.c);
  }
  if (pixels != "bytes" && !(is_decided_here(pixels) && prefers_bytes && fits)) return;
  options.training_pixels = PixelForm::bytes;
  options.pixel_scale.means.fill(127.5F);  // around zero, as images with their mean subtracted
}

void add_tune_option(Command& command, bool& tune) {
  command.flag("--tune", tune,
               "Let kernels measure which of their algorithms is the fastest, which takes "
               "seconds at the start; default: by the library's own model. A run keeps the choice");
}

void add_recompute_option(Command& command, std::function<void()> given) {
  command.flag(
      "--recompute", std::move(given),
      "Free the outputs of BatchNorm, pooling and other layers that do little, and compute them "
      "again for the backward pass, if a step takes less memory so: it is longer, and its bits are "
      "the same");
}

void add_graphs_option(Command& command, GraphUse& graphs) {
  command.option(
      "--graphs auto|on|off",
      [&graphs](const std::string& text) { graphs = parse_graph_use(text); },
      "Whether steps run as captured graphs, which give the same bits (default: auto, on one "
      "device "
      "that captures them)");
}

void add_watchdog_option(Command& command, const std::string& what, double& seconds) {
  command
      .option(
          "--watchdog SECONDS", &seconds,
          fmt::format("Seconds after which a {} that has not finished, or a rank that another one "
                      "waits for, counts as stuck; at least 1",
                      what))
      .show_default()
      .check([](const std::string& text) {
        constexpr double most = 1e9;  // some 30 years, which a clock in nanoseconds can add to now
        double value = 0;
        if (!parse_number(text, &value)) {
          throw error("--watchdog {}: it must be a number of seconds", text);
        }
        if (!(value >= 1)) throw error("--watchdog {}: at least 1 second", text);
        if (value > most) throw error("--watchdog {}: at most {} seconds", text, most);
      });
}

void add_devices_option(Command& command, std::string& devices) {
  command
      .option("--devices DEVICES", &devices,
              "Devices to compute on, e.g. cpu, cpu:2 (see 'tandem devices')")
      .show_default();
}

void add_json_option(Command& command, bool& as_json) {
  command.flag("--json", as_json, "Print JSON");
}

void print_json(const nlohmann::json& tree) {
  say("{}\n", tree.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void add_device_options(Command& command, DeviceOptions& options) {
  command.option("--link SPEED", &options.link,
                 "Speed of copies between devices, e.g. bandwidth=4GB/s,latency=10us (default: "
                 "unlimited)");
  command.option("--topology FILE", &options.topology,
                 "How devices are connected: a file that `tandem devices --measure` writes");
  command.option("--threads N", &options.threads, "Cores that cpu devices share (default: all)");
  command.option("--test-delays SEED", &options.delay_seed,
                 "Test mode: random delays on every stream, drawn with this seed; the results must "
                 "not change");
  command.option(
      "--test-delay-ms MS",
      [&options](const std::string& text) {
        double milliseconds = 0;
        if (!parse_number(text, &milliseconds) || !(milliseconds >= 0)) {
          throw error("--test-delay-ms {}: it must be a number of at least 0", text);
        }
        options.delay_seconds = milliseconds / 1000;
      },
      "The longest of these delays (default: 1)");
}

void RooflineArguments::apply(Roofline& roofline) const {
  if (flops && !(std::isfinite(*flops) && *flops > 0)) {
    throw error("--flops {}: a finite number above 0 of operations a second, e.g. 4.3e12", *flops);
  }
  if (flops) roofline.flops = *flops;
  if (!bandwidth.empty()) roofline.bandwidth = parse_bandwidth(bandwidth, "--memory-bandwidth");
}

void add_roofline_options(Command& command, RooflineArguments& arguments) {
  command.option("--flops N", &arguments.flops,
                 "Roofline for costs that were not measured: float operations per second of a "
                 "device, e.g. 4.3e12");
  command.option("--memory-bandwidth SPEED", &arguments.bandwidth,
                 "Roofline: bandwidth of a device's memory, e.g. 200GB/s");
}

void add_net_options(Command& command, NetChoice& choice) {
  command.option("--net FILE", &choice.net, "A model's name or a prototxt file").show_default();
  add_net_size_options(command, choice);
}

void add_net_size_options(Command& command, NetChoice& choice) {
  command.option("--batch N", &choice.batch, "Images in the global batch (default: the net's)")
      .range(1, most_batch_images);
  command.option("--classes N", &choice.classes, "Classes (default: as the net's file has them)")
      .range(1);
  command
      .option("--image-size,--size N", &choice.size,
              "Height and width of the images (default: the net's)")
      .range(1);
  add_state_options(command, "", "net", choice.state);
}

}  // namespace tandem::cli
