#include "core/run/setup/rank_setup.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/ranks/agreement.h"
#include "core/ranks/ranks.h"
#include "core/run/setup/setup_data.h"

namespace tandem {

void require_supported_by_ranks(const Registry& registry, const TrainOptions& options) {
  const auto refuse = [](bool given, const std::string& option, const char* instead) {
    if (given) throw error("{} is for one process, not for several ranks: {}", option, instead);
  };
  refuse(!options.machine.link.empty(), "--link", "messages between ranks have real links");
  refuse(options.graphs == GraphUse::on, "--graphs on", "leave it out");
  if (!options.devices.empty()) require_messages_from(registry, options.devices);
}

namespace {

using nlohmann::json;

constexpr const char* setup_message = "the options, the net and what it has read of the data";

// A net's file that the solver names is no option of a rank.
void require_same_net_file(const std::string& file, const std::string& of_root) {
  const std::string here = file_contents(file);
  if (here.empty() || of_root.empty() || here == of_root) return;
  throw error(
      "file '{}' is not that of rank 0: {} here, {} there; copy it from there, or remove it", file,
      here, of_root);
}

// Error if data of as many images and the same classes are others than those of rank 0.
void require_same_samples(const TrainSetup& setup) {
  const std::pair<const char*, const Dataset*> splits[] = {{"train", setup.training_data.get()},
                                                           {"val", setup.validation_data.get()}};
  for (const auto& [split, dataset] : splits) {
    const auto of_root = setup.record.fingerprints.find(split);
    if (dataset == nullptr || of_root == setup.record.fingerprints.end()) continue;
    require_same_samples(of_root->second, *dataset, setup.record.options.data, split);
  }
}

}  // namespace

void send_setup(const Communicator& ranks, const TrainSetup& setup) {
  const json tree = {
      {"record", to_json(setup.record)},
      {"net_file", setup.net.file},
      {"net_contents", file_contents(setup.net.file)},
      {"net", write_net(setup.net)},
      {"head_net", setup.head_net ? write_net(*setup.head_net) : ""},
      {"solver", write_solver(setup.solver)},
      {"test_samples", setup.test_samples},
      {"timeline", setup.record.options.timeline},
      {"validates", setup.validation_data != nullptr},
      {"validation_samples", setup.validation_data == nullptr ? 0 : setup.validation_data->size()}};
  static_cast<void>(ranks.broadcast_text(tree.dump(), setup_message));
}

TrainSetup receive_setup(const Communicator& ranks, Registry& registry, const TrainOptions& options,
                         const Strategies& strategies) {
  const json tree = json::parse(ranks.broadcast_text("", setup_message));
  TrainSetup setup;
  setup.record = run_record_from_json(tree.at("record").get<std::string>(), "of rank 0");
  setup.net = read_net_text(tree.at("net").get<std::string>());
  const std::string head = tree.at("head_net");
  if (!head.empty()) setup.head_net = read_net_text(head);
  setup.solver = read_solver_text(tree.at("solver").get<std::string>());
  // A run that goes on has its net in its folder, which rank 0 alone needs.
  if (!options.resume) require_same_net_file(tree.at("net_file"), tree.at("net_contents"));
  setup.strategies = &strategies;
  setup.test_samples = tree.at("test_samples");
  TrainOptions& chosen = setup.record.options;
  chosen.watchdog_seconds = options.watchdog_seconds;
  chosen.check_plugins = options.check_plugins;
  chosen.stop = options.stop;
  chosen.timeline = tree.at("timeline");
  setup.record.machine.delay_seed = options.machine.delay_seed;
  setup.record.machine.delay_seconds = options.machine.delay_seconds;
  open_datasets(registry, setup);
  if (!tree.at("validates").get<bool>()) setup.validation_data.reset();
  const int64_t wanted = tree.at("validation_samples");
  const int64_t validated = setup.validation_data == nullptr ? 0 : setup.validation_data->size();
  if (setup.training_data->size() == setup.record.training_samples && validated == wanted &&
      setup.training_data->class_names() == setup.record.class_names) {
    require_same_samples(setup);
    return setup;
  }
  throw error(
      "the data in '{}' are not those of rank 0: {} training and {} validation images here, {} and "
      "{} there, or other classes",
      chosen.data, setup.training_data->size(), validated, setup.record.training_samples, wanted);
}

}  // namespace tandem
