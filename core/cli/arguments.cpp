#include "core/cli/arguments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/numbers/shape.h"
#include "core/base/text/strings.h"
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

Option run_option(std::filesystem::path& run) {
  return {"--run FOLDER", &run, "Run folder", required};
}

Option weights_option(std::string& weights) {
  return {"--weights best|last", &weights, "Weights of the best or the last step", show_default};
}

Option devices_option(std::string& devices) {
  return {"--devices DEVICES", &devices,
          "Devices to compute on, e.g. cpu, cpu:2 (see 'tandem devices')", show_default};
}

Option ranks_option(int& ranks) {
  return {"--ranks N", &ranks,
          "Processes that mpirun or srun has started, each with as many --devices; another "
          "number of them is an error (default: any)"};
}

Option json_option(bool& as_json) {
  return {"--json", &as_json, "Print JSON"};
}

Option task_option(Target task) {
  return {"--task labels|multilabel|regression", std::move(task),
          "What the images of a list or CSV have: a class each, several labels, or numbers to "
          "predict (default: as the data look)"};
}

Option threads_option(int& threads) {
  return {"--threads N", &threads, "Threads that read images (default: all cores)", in_range(1)};
}

Option decode_threads_option(int& threads) {
  return {"--decode-threads N", &threads,
          "Threads that read images (default: by the number of cores)"};
}

Option tune_option(bool& tune) {
  return {"--tune", &tune,
          "Let kernels measure which of their algorithms is the fastest, which takes "
          "seconds at the start; default: by the library's own model. A run keeps the choice"};
}

Option recompute_option(std::function<void()> given) {
  return {"--recompute", std::move(given),
          "Free the outputs of BatchNorm, pooling and other layers that do little, and compute "
          "them again for the backward pass, if a step takes less memory so: it is longer, and its "
          "bits are the same"};
}

Option graphs_option(GraphUse& graphs) {
  return {"--graphs auto|on|off",
          [&graphs](const std::string& text) { graphs = parse_graph_use(text); },
          "Whether steps run as captured graphs, which give the same bits (default: auto, on one "
          "device that captures them)"};
}

Option watchdog_option(const std::string& what, double& seconds) {
  const auto check = [](const std::string& text) {
    constexpr double max = 1e9;  // some 30 years, which a clock in nanoseconds can add to now
    double value = 0;
    if (!parse_number(text, &value)) {
      throw error("--watchdog {}: it must be a number of seconds", text);
    }
    if (!(value >= 1)) throw error("--watchdog {}: at least 1 second", text);
    if (value > max) throw error("--watchdog {}: at most {} seconds", text, max);
  };
  return {"--watchdog SECONDS", &seconds,
          fmt::format("Seconds after which a {} that has not finished, or a rank that another one "
                      "waits for, counts as stuck; at least 1",
                      what),
          show_default, checked_by(check)};
}

Option precision_option(std::string& precision, const std::string& standard) {
  return {"--precision float32|bfloat16|float16|tf32", &precision,
          fmt::format("Precision of activations and their gradients (default: {}); weights stay "
                      "float32. On devices that support them only: float16, whose gradients are "
                      "multiplied by a loss scale, and tf32, which is float32 with 11 significant "
                      "bits in products",
                      standard),
          checked_by([](const std::string& text) { (void)parse_precision(text); })};
}

Option pixels_option(std::string& pixels, const std::string& standard) {
  return {"--pixels auto|bytes|floats", &pixels,
          fmt::format("Form in which images travel to the devices: floats, bytes (a quarter of "
                      "the traffic; resized pixels are rounded), or auto (default): {}",
                      standard),
          checked_by(require_pixels_word)};
}

Option strategy_option(const std::vector<std::string>& more, std::string& strategy,
                       const std::string& help) {
  std::vector<std::string> names;
  for (const Strategy& one : built_in_strategies()) names.push_back(one.name);
  names.insert(names.end(), more.begin(), more.end());
  return {fmt::format("--strategy {}", fmt::join(names, "|")), &strategy, help, show_default};
}

void add_device_options(Command& command, DeviceOptions& options) {
  const auto read_delay = [&options](const std::string& text) {
    double milliseconds = 0;
    if (!parse_number(text, &milliseconds) || !(milliseconds >= 0)) {
      throw error("--test-delay-ms {}: it must be a number of at least 0", text);
    }
    options.delay_seconds = milliseconds / 1000;
  };
  command.add({
      {"--link SPEED", &options.link,
       "Speed of copies between devices, e.g. bandwidth=4GB/s,latency=10us (default: unlimited)"},
      {"--topology FILE", &options.topology,
       "How devices are connected: a file that `tandem devices --measure` writes"},
      {"--threads N", &options.threads, "Cores that cpu devices share (default: all)", in_range(1)},
      {"--test-delays SEED", &options.delay_seed,
       "Test mode: random delays on every stream, drawn with this seed; the results must not "
       "change"},
      {"--test-delay-ms MS", read_delay, "The longest of these delays (default: 1)"},
  });
}

void add_state_options(Command& command, const std::string& prefix, const std::string& what,
                       NetState& state) {
  command.add({
      {"--" + prefix + "level N", &state.level,
       "Level of the " + what + ", for layers with min_level or max_level"},
      {"--" + prefix + "stage NAMES", &state.stages,
       "Stages of the " + what + ", for layers with stage or not_stage, e.g. a,b",
       separated_by(',')},
  });
}

void add_net_options(Command& command, NetChoice& choice) {
  command.add({{"--net FILE", &choice.net, "A model's name or a prototxt file", show_default}});
  add_net_size_options(command, choice);
}

void add_net_size_options(Command& command, NetChoice& choice) {
  command.add({
      {"--batch N", &choice.batch, "Images in the global batch (default: the net's)",
       in_range(1, max_batch_images)},
      {"--classes N", &choice.classes, "Classes (default: as the net's file has them)",
       in_range(1)},
      {"--image-size,--size N", &choice.size, "Height and width of the images (default: the net's)",
       in_range(1)},
  });
  add_state_options(command, "", "net", choice.state);
}

void add_strategy_options(Command& command, StrategyOptions& options) {
  for (const KnownOption& known : built_in_strategies().options()) {
    const StrategyOption& option = known.option;
    const auto read = [&options, &option](const std::string& text) {
      options[option.key] = option.parse(text);
    };
    if (option.is_flag) {
      command.add({{option.name, [read] { read(""); }, known.help_text()}});
      continue;
    }
    const std::string value =
        option.words.empty() ? "VALUE" : fmt::format("{}", fmt::join(option.words, "|"));
    command.add({{option.name + " " + value, read, known.help_text()}});
  }
}

void require_strategy_options(const Command& command, const std::string& strategy,
                              const std::vector<StrategyOption>& shown) {
  const Strategies& strategies = built_in_strategies();
  for (const KnownOption& known : strategies.options()) {
    const StrategyOption& option = known.option;
    if (!command.given(option.name)) continue;
    const bool is_shown = std::any_of(shown.begin(), shown.end(), [&](const StrategyOption& other) {
      return other.name == option.name;
    });
    if (!is_shown) strategies.require_option_of(strategy, known);
    if (!option.opposite.empty() && command.given(option.opposite)) {
      throw error("{} and {} contradict each other: give one of them", option.name,
                  option.opposite);
    }
  }
}

void choose_made_up_pixels(const std::string& pixels, bool prefers_bytes, SessionOptions& options) {
  constexpr int64_t max_channels = 4;
  const bool fits = options.data.c <= max_channels;
  if (pixels == "bytes" && !fits) {
    throw error("--pixels bytes: images have 1 to {} channels, the net takes {}", max_channels,
                options.data.c);
  }
  if (pixels != "bytes" && !(is_decided_here(pixels) && prefers_bytes && fits)) return;
  options.training_pixels = PixelForm::bytes;
  options.pixel_scale.means.fill(127.5F);  // around zero, as images with their mean subtracted
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

std::map<std::string, std::string> read_pairs(const std::vector<std::string>& texts,
                                              const char* option, const char* example) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    const size_t at = text.find('=');
    if (at == std::string::npos)
      throw error("{} {}: it must be name=value, e.g. {}", option, text, example);
    const std::string name = text.substr(0, at), value = text.substr(at + 1);
    const auto [before, is_new] = pairs.emplace(name, value);
    if (!is_new && before->second != value) {
      throw error("{0} {1}={2} and {0} {1}={3}: give one of them", option, name, before->second,
                  value);
    }
  }
  return pairs;
}

void write_output(const std::string& path, const std::string& text) {
  constexpr size_t beginning = 8;
  std::error_code ignored;
  std::string there;
  if (std::filesystem::is_regular_file(path, ignored)) {
    there.resize(beginning);
    there.resize(InputFile(path).read(0, there.data(), beginning));
  }
  if (!there.empty() && text.compare(0, beginning, there) != 0) {
    throw error("'{}' exists and is another kind of file: choose another name", path);
  }
  write_text_file(path, text);
}

}  // namespace tandem::cli
