// AlexNet on several devices: a program on the library that shows, measures and trains. What the
// numbers mean: docs/guide/pipeline.md.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "core/model/classes.h"
#include "core/model/models.h"
#include "core/tandem.h"
#include "examples/alexnet/comparison.h"
#include "examples/alexnet/options.h"
#include "examples/alexnet/pipeline.h"
#include "examples/alexnet/training.h"

namespace alexnet {
namespace {

int run(const Options& options) {
  tandem::Registry registry = tandem::Registry::with_defaults();
  tandem::NetDefinition net = tandem::read_net(tandem::find_net("alexnet"));
  tandem::Shape data = net.input_shape();
  data.n = 1;
  if (options.size > 0) data.h = data.w = options.size;
  const int64_t classes =
      options.data.empty() ? options.classes : count_classes(registry, options, data);
  if (classes > 0) net = tandem::with_class_count(net, classes);
  if (options.strategy == "all") {
    print(compare_strategies(registry, net, data, options), options);
    return 0;
  }
  print(measure_pipeline(registry, net, data, options), options);
  return options.data.empty() ? 0 : train_on_images(options);
}

// Where stderr cannot be written either, that is no reason to abort.
void complain(const std::string& message) {
  std::fputs(("tandem-alexnet: " + message + "\n").c_str(), stderr);
}

}  // namespace
}  // namespace alexnet

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may grow no larger is a failing write
  try {
    int exit_code = 0;
    const auto options = alexnet::read_options(argc, argv, &exit_code);
    return options ? alexnet::run(*options) : exit_code;
  } catch (const std::bad_alloc&) {
    alexnet::complain("out of memory");
  } catch (const std::exception& failure) {
    alexnet::complain(failure.what());
  }
  return 1;
}
