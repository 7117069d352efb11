#include <fmt/format.h>

#include <exception>

#include "core/base/error.h"
#include "core/cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Tandem trains convolutional networks on one machine: every device's compute and "
      "communication streams are driven\n"
      "by one graph, so that gradients travel while others are still being computed.\n"
      "Begin with: tandem train --data FOLDER --net cifar10_quick"};
  app.name("tandem");
  app.set_version_flag("--version", "tandem " TANDEM_VERSION);
  app.require_subcommand(1);
  tandem::cli::Action action;
  tandem::cli::add_train(app, action);
  tandem::cli::add_test(app, action);
  tandem::cli::add_predict(app, action);
  tandem::cli::add_profile(app, action);
  tandem::cli::add_plan(app, action);
  tandem::cli::add_layers(app, action);
  tandem::cli::add_plugins(app, action);
  tandem::cli::add_devices(app, action);
  try {
    app.parse(argc, argv);
    return action ? action() : 1;
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& failure) {
    fmt::print(stderr, "tandem: {} (see 'tandem --help', or '--help' behind a command)\n",
               failure.what());
    return 1;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "tandem: out of memory\n");
    return 1;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "tandem: {}\n", failure.what());
    return 1;
  }
}
