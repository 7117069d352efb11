#include <fstream>

#include "core/base/error.h"
#include "core/base/shape.h"
#include "core/cli/commands.h"
#include "core/schedule/cost/topology_file.h"
#include "core/train/safetensors.h"
#include "core/train/session.h"

namespace tandem::cli {
namespace {

// Whether --pixels leaves it to the program.
bool is_decided_here(const std::string& pixels) {
  return pixels.empty() || pixels == "auto";
}

}  // namespace

MachineOptions MachineArguments::options() const {
  MachineOptions options;
  if (threads < 0)
    throw error("--threads {}: there must be at least 1 (or 0 for all cores)", threads);
  options.threads = threads;
  if (!link.empty()) options.link = parse_link(link);
  if (!topology.empty()) {
    if (!link.empty()) {
      throw error("--link {} and --topology {}: both say how fast links are; give one of them",
                  link, topology);
    }
    options.topology = std::make_shared<Topology>(read_topology(topology));
  }
  options.delay_seed = delay_seed;
  options.delay_seconds = delay_seed != 0 ? delay_milliseconds / 1000 : 0;
  return options;
}

std::map<std::string, std::string> read_pairs(const std::vector<std::string>& texts,
                                              const char* option, const char* example) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    const size_t at = text.find('=');
    if (at == std::string::npos)
      throw error("{} {}: it is written name=value, e.g. {}", option, text, example);
    pairs[text.substr(0, at)] = text.substr(at + 1);
  }
  return pairs;
}

void add_state_options(CLI::App& command, const std::string& prefix, const std::string& what,
                       StateArguments& arguments) {
  command.add_option("--" + prefix + "level", arguments.level,
                     "Level of the " + what + ", for layers with min_level or max_level");
  command
      .add_option("--" + prefix + "stage", arguments.stages,
                  "Stages of the " + what + ", for layers with stage or not_stage, e.g. a,b")
      ->delimiter(',');
}

void write_output(const std::string& path, const std::string& text) {
  constexpr size_t beginning = 8;
  std::string there(beginning, '\0');
  std::ifstream file(path, std::ios::binary);
  if (file && file.read(there.data(), beginning).gcount() > 0 &&
      text.compare(0, beginning, there) != 0) {
    throw error("'{}' exists and is another kind of file: choose another name", path);
  }
  write_text_file(path, text);
}

void add_precision_option(CLI::App& command, std::string& precision, const std::string& fallback) {
  command
      .add_option(
          "--precision", precision,
          fmt::format(
              "Of activations and their gradients (default: {}): float32, bfloat16, "
              "or on devices that have them float16 (gradients times a loss scale) and tf32 "
              "(float32, multiplied with 11 significant bits); weights stay "
              "float32",
              fallback))
      ->check([](const std::string& text) {
        (void)parse_precision(text);  // its Error says all, and CLI11 leaves it as it is
        return std::string();
      });
}

void add_pixels_option(CLI::App& command, std::string& pixels, const std::string& standard) {
  command
      .add_option("--pixels", pixels,
                  fmt::format("How images travel to the devices: floats, bytes (a quarter of the "
                              "traffic; what is resized is rounded), or auto (default): {}",
                              standard))
      ->check([](const std::string& text) {
        require_pixels_word(text);
        return std::string();
      });
}

std::string pixels_word(const SessionOptions& options) {
  return options.training_pixels == PixelForm::bytes ? "bytes" : "floats";
}

std::string pixels_text(const std::string& pixels, const SessionOptions& options) {
  if (options.training_pixels == PixelForm::rounded) {
    return "pixels: floats; the devices' backend makes none of bytes\n";
  }
  const std::string word = pixels_word(options);
  if (!is_decided_here(pixels)) return fmt::format("pixels: {}\n", word);
  return fmt::format("pixels: {} by default (or say --pixels {})\n", word,
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
  options.pixel_scale.means.fill(127.5F);  // around zero, as images whose mean is taken away
}

void add_tune_option(CLI::App& command, bool& tune) {
  command.add_flag("--tune", tune,
                   "Let kernels measure which of their algorithms is the fastest ("
                   "takes seconds at the start); default: by the library's own model. A run keeps "
                   "what was chosen");
}

void add_graphs_option(CLI::App& command, GraphUse& graphs) {
  command.add_option_function<std::string>(
      "--graphs", [&graphs](const std::string& text) { graphs = parse_graph_use(text); },
      "Whether steps run as captured graphs, which give the same bits: auto (default: on one "
      "device "
      "that captures them), on or off");
}

void add_machine_options(CLI::App& command, MachineArguments& arguments) {
  command.add_option("--link", arguments.link,
                     "Speed of copies between devices, e.g. bandwidth=4GB/s,latency=10us (default: "
                     "as fast as it goes)");
  command.add_option("--topology", arguments.topology,
                     "How devices are connected: a file as `tandem devices --measure` writes");
  command.add_option("--threads", arguments.threads, "Cores the cpu devices share (default: all)");
  command.add_option(
      "--test-delays", arguments.delay_seed,
      "Test mode: random delays on every stream, from this seed; the results must not change");
  command.add_option("--test-delay-ms", arguments.delay_milliseconds, "The longest such delay")
      ->capture_default_str();
}

void RooflineArguments::apply(Roofline& roofline) const {
  if (flops < 0) throw error("--flops {}: a device does more than 0 a second, e.g. 4.3e12", flops);
  if (flops > 0) roofline.flops = flops;
  if (!bandwidth.empty()) roofline.bandwidth = parse_bandwidth(bandwidth, "--memory-bandwidth");
}

void add_roofline_options(CLI::App& command, RooflineArguments& arguments) {
  command.add_option("--flops", arguments.flops,
                     "Roofline for costs never measured: float operations a second that a device "
                     "reaches, e.g. 4.3e12");
  command.add_option("--memory-bandwidth", arguments.bandwidth,
                     "Roofline: what its memory reaches, e.g. 200GB/s");
}

void add_net_options(CLI::App& command, NetArguments& arguments) {
  command.add_option("--net", arguments.net, "A model's name or a prototxt file")
      ->capture_default_str();
  add_net_size_options(command, arguments);
}

CLI::Validator at_least_one() {
  return {[](std::string& text) {
            int64_t value = 0;
            const bool good = CLI::detail::lexical_cast(text, value) && value >= 1;
            return good ? std::string()
                        : fmt::format("'{}' is not a whole number of at least 1", text);
          },
          "", "at least 1"};
}

void add_net_size_options(CLI::App& command, NetArguments& arguments) {
  command.add_option("--batch", arguments.batch, "Images in the global batch (default: the net's)")
      ->check(at_least_one());
  command.add_option("--classes", arguments.classes, "Classes (default: as the net's file says)")
      ->check(at_least_one());
  command
      .add_option("--size", arguments.size,
                  "Height and width of the images, if the net does not say")
      ->check(at_least_one());
  add_state_options(command, "", "net", arguments.state);
}

NetDefinition NetArguments::definition() const {
  const NetDefinition read = in_states(read_net(find_net(net)), state.state(), state.state());
  if (classes < 0) throw error("--classes {}: there must be at least 2", classes);
  return classes > 0 ? with_class_count(read, classes) : read;
}

Shape NetArguments::data(const NetDefinition& net_definition) const {
  Shape shape = net_definition.input_shape();
  shape.n = 1;
  if (shape.c == 0) shape.c = 3;
  if (size > 0) shape.h = shape.w = size;
  if (shape.h == 0 || shape.w == 0) {
    throw error("net '{}' does not say how large its images are: say it with --size", net);
  }
  return shape;
}

int64_t NetArguments::batch_of(const NetDefinition& net_definition) const {
  if (batch < 0) throw error("--batch {}: the batch must have at least 1 image", batch);
  return batch > 0 ? batch : net_definition.batch_size(TANDEM_TRAIN).value_or(64);
}

}  // namespace tandem::cli
