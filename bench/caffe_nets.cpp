// Runs every prototxt in a folder, such as Caffe's models/ and examples/, unmodified on synthetic
// data: two steps of each solver and of each net that can be trained, one forward pass of the
// others. Prints a table with a line for each file.
//
//   bench_caffe_nets CAFFE_FOLDER [PART_OF_A_PATH]
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/numbers/random.h"
#include "core/model/file/net_phases.h"
#include "core/model/file/solver_definition.h"
#include "core/run/trainer.h"
#include "core/session/session.h"

namespace {

namespace fs = std::filesystem;
using namespace tandem;

constexpr int64_t batch = 4, steps = 2;

struct Quiet : Observer {
  void on_step(const StepReport& report) override { losses.push_back(report.loss); }
  std::vector<double> losses;
};

bool is_solver(const fs::path& file) {
  const Message message = read_text_format(file);
  return message.find("base_lr") != nullptr;
}

bool has_loss(const NetDefinition& net) {
  return std::any_of(net.layers.begin(), net.layers.end(), [](const LayerDefinition& layer) {
    return layer.in_phase(TANDEM_TRAIN) && layer.type.ends_with("Loss");
  });
}

std::string train_steps(TrainOptions options, const fs::path& scratch) {
  options.data = "synthetic";
  options.batch = batch;
  options.steps = steps;
  options.display = 1;
  options.out = scratch / "run";
  options.data_parameters = {{"size", "8"}, {"val_size", "4"}};
  options.timeline = false;
  fs::remove_all(options.out);
  Quiet observer;
  (void)train(options, observer);
  std::string losses;
  for (const double loss : observer.losses) losses += fmt::format(" {:.4g}", loss);
  return fmt::format("two steps, loss{}", losses);
}

// Noise as pixels, every class in turn.
void fill_batch(const Net& net, const BatchLayout& layout, std::byte* memory) {
  std::memset(memory, 0, size_t(layout.bytes));
  const tandem_step step{1, 0, 1e-4F, static_cast<float>(net.batch), 0, 0};
  std::memcpy(memory, &step, sizeof step);
  const int64_t classes = net.prediction < 0 ? 2 : net.tensors[size_t(net.prediction)].shape.c;
  auto* labels = reinterpret_cast<float*>(memory + layout.label_offset);
  for (int64_t i = 0; i < net.batch; ++i) labels[i] = static_cast<float>(i % classes);
  Random random(1, stream_of("standing batch"));
  auto* pixels = reinterpret_cast<float*>(memory + layout.data_offset);
  uint32_t bits = 0;
  for (int64_t i = 0; i < net.batch * element_count(layout.sample); ++i, bits >>= 8) {
    if (i % 4 == 0) bits = random.bits();
    pixels[i] = static_cast<float>(bits & 0xff) - 127.5F;
  }
}

// One step of the session's testing plan with the initial weights of seed 1: the net's last output
// of all rows, empty if there is none.
std::vector<float> forward_once(Session& session) {
  Phase& phase = session.testing();
  const Net& net = phase.net;
  std::vector<Shape> more;
  for (const int input : net.more_inputs) more.push_back(net.tensors[size_t(input)].shape);
  const BatchLayout layout =
      make_batch_layout(net.batch, net.tensors[size_t(net.data)].shape, more);
  const Loader::Allocator allocator = session.allocator();
  auto* memory = static_cast<std::byte*>(allocator.allocate(layout.bytes));
  fill_batch(net, layout, memory);
  session.set_initial_weights(1);
  phase.executor->issue(0, {{phase.batch_buffer, memory}});
  phase.executor->drain();
  allocator.free(memory);
  const float* values = phase.predictions(0);
  if (values == nullptr) return {};
  return {values, values + element_count(net.tensors[size_t(net.prediction)].shape)};
}

std::string forward(const NetDefinition& net) {
  Registry registry = Registry::with_defaults();
  SessionOptions options;
  options.training = false;
  options.batch = 1;
  options.data = net.input_shape();
  if (options.data.c == 0) options.data.c = 3;
  Session session(registry, net, options);
  const std::vector<float> values = forward_once(session);
  double sum = 0;
  for (const float value : values) sum += value;
  const Net& built = session.net();
  if (!std::isfinite(sum)) return "forward: not finite";
  if (built.prediction < 0) return "forward";
  const Tensor& tensor = built.tensors[static_cast<size_t>(built.prediction)];
  return fmt::format("forward, '{}' {}, sum {:.4g}", tensor.name, to_string(tensor.shape), sum);
}

std::string result_of(const fs::path& file, const fs::path& scratch, bool* good) {
  *good = true;
  try {
    TrainOptions options;
    if (is_solver(file)) {
      options.solver = file.string();
      return train_steps(options, scratch);
    }
    const NetDefinition net = in_states(read_net(file), {}, {});
    if (!has_loss(net)) return forward(net);
    options.net = file.string();
    return train_steps(options, scratch);
  } catch (const Error& failure) {
    *good = false;
    return failure.what();
  }
}

std::vector<fs::path> files_below(const fs::path& folder, const std::string& part) {
  std::vector<fs::path> files;
  for (const char* name : {"models", "examples"}) {
    if (!fs::exists(folder / name)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder / name)) {
      const bool wanted = entry.path().string().find(part) != std::string::npos;
      if (entry.path().extension() == ".prototxt" && wanted) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: bench_caffe_nets CAFFE_FOLDER [PART_OF_A_PATH]\n");
    return 2;
  }
  const fs::path folder = arguments[1];
  const fs::path scratch = fs::temp_directory_path() / fmt::format("caffe_nets_{}", getpid());
  fs::create_directories(scratch);
  int ran = 0, refused = 0;
  fmt::print("| file | result |\n|---|---|\n");
  for (const fs::path& file : files_below(folder, count > 2 ? arguments[2] : "")) {
    bool good = false;
    std::string text = result_of(file, scratch, &good);
    (good ? ran : refused) += 1;
    // Messages name files as the table does, relative to the folder.
    for (size_t at; (at = text.find(folder.string() + "/")) != std::string::npos;) {
      text.erase(at, folder.string().size() + 1);
    }
    fmt::print("| {} | {} |\n", fs::relative(file, folder).string(), text);
    std::fflush(stdout);
  }
  fmt::print("\n{} ran, {} were refused with a reason\n", ran, refused);
  fs::remove_all(scratch);
  return 0;
}
