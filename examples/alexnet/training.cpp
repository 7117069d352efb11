#include "training.h"

#include <fmt/format.h>
#include <tandem/process.h>
#include <tandem/profile.h>
#include <tandem/train.h>

#include <cstdio>

#include "text.h"

namespace alexnet {
namespace {

class Lines : public tandem::Observer {
 public:
  void on_message(const std::string& line) override { say_now(line); }
  void on_step(const tandem::StepReport& r) override {
    constexpr int64_t every = 10;
    if (r.step % every != 0 && r.step != r.steps && r.step != 1) return;
    const std::string left = r.seconds_left >= 0 ? seconds_text(r.seconds_left) + " left" : "";
    say_now(fmt::format("step {}/{} loss {:.4f} lr {:.3g} {:.1f} images/s, waited {} for data {}",
                        r.step, r.steps, r.loss, r.rate, r.images_per_second,
                        seconds_text(r.waited_seconds), left));
  }
  void on_evaluation(const tandem::Evaluation& e) override {
    say_now(fmt::format(
        "validation after step {}: {} images, loss {:.4f}, top-1 {:.2f} %, top-5 {:.2f} %", e.step,
        e.samples, e.loss, 100 * e.top1, 100 * e.top5));
  }

 private:
  static void say_now(const std::string& line) {
    say("{}\n", line);
    std::fflush(stdout);
  }
};

}  // namespace

int train_on_images(const Options& options) {
  tandem::TrainOptions training;
  training.data = options.data;
  training.net = "alexnet";
  training.devices = options.devices;
  training.precision = options.precision;
  training.strategy = options.strategy;
  training.strategy_options = options.strategy_options;
  training.machine = options.machine;
  training.batch = options.batch;
  training.steps = options.steps;
  training.epochs = options.epochs > 0 || options.steps > 0 ? options.epochs : 1;
  training.rate = options.rate;
  training.seed = options.seed;
  training.out = options.out;
  training.stop = tandem::stop_on_signals("\ntandem-alexnet: stopping after the step at hand\n");
  Lines lines;
  const tandem::TrainResult result = tandem::train(training, lines);
  say("\ntrained {} steps on real images: {:.1f} images/s, peak memory {}, run folder: {}\n",
      result.steps, result.images_per_second, bytes_text(tandem::peak_memory_bytes()),
      result.run.string());
  return result.stopped ? 130 : 0;
}

}  // namespace alexnet
