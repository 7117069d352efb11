#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/cli/commands.h"

namespace {

// CLI11 says of a mistyped command only that one is required.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (std::find(known.begin(), known.end(), argv[1]) != known.end()) return "";
  return fmt::format("unknown command '{}'{}; there are {}", argv[1],
                     tandem::did_you_mean(argv[1], known), fmt::join(known, ", "));
}

// Where stderr cannot be written either, that is no reason to abort.
void complain(const std::string& message) {
  std::fputs(("tandem: " + message + "\n").c_str(), stderr);
}

}  // namespace

int main(int argc, char** argv) {
  // A file that may grow no larger is then a failing write, with a message, and not a killed
  // program.
  std::signal(SIGXFSZ, SIG_IGN);
  // A reader of the output that goes away (`| head`) does not end a run.
  std::signal(SIGPIPE, SIG_IGN);
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
  tandem::cli::add_data(app, action);
  tandem::cli::add_pack(app, action);
  tandem::cli::add_profile(app, action);
  tandem::cli::add_plan(app, action);
  tandem::cli::add_export(app, action);
  tandem::cli::add_net(app, action);
  tandem::cli::add_layers(app, action);
  tandem::cli::add_plugins(app, action);
  tandem::cli::add_devices(app, action);
  try {
    app.parse(argc, argv);
    return action ? action() : 1;
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& failure) {
    const std::string unknown = unknown_command(app, argc, argv);
    complain((unknown.empty() ? std::string(failure.what()) : unknown) +
             " (see 'tandem --help', or '--help' behind a command)");
    return 1;
  } catch (const std::bad_alloc&) {
    complain("out of memory");
    return 1;
  } catch (const std::exception& failure) {
    complain(failure.what());
    return 1;
  }
}
