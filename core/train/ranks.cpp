#include "core/train/ranks.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <future>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/running_note.h"
#include "core/base/strings.h"
#include "core/base/version.h"
#include "core/data/fingerprint.h"
#include "core/device/parse.h"
#include "core/train/rank_links.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr const char* default_transport = "mpi";

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// The processors that this process may use, as a text that is the same where they are.
std::string processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string text;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) text += CPU_ISSET(cpu, &set) ? '1' : '0';
  return text;
}

bool is_root(const Communicator& ranks) {
  return ranks.rank() == 0;
}

void broadcast_floats(const Communicator& ranks, std::vector<float>& values, const char* what) {
  auto count = static_cast<int64_t>(values.size());
  ranks.broadcast(&count, sizeof(count), what);
  values.resize(static_cast<size_t>(count));
  ranks.broadcast(values.data(), count * static_cast<int64_t>(sizeof(float)), what);
}

}  // namespace

void let_root_report() {
  std::this_thread::sleep_for(std::chrono::seconds(3));
}

// The variables are those of Open MPI, of MPICH and Intel MPI, and of Slurm's srun.
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* text = std::getenv(name);
    double number = 0;
    if (text != nullptr && parse_number(text, &number) && number > 1) {
      return static_cast<int>(number);
    }
  }
  return 1;
}

namespace {

// The number that the launcher has given this process; 0 if it has given none.
int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* text = std::getenv(name);
    double number = 0;
    if (text != nullptr && parse_number(text, &number) && number > 0) {
      return static_cast<int>(number);
    }
  }
  return 0;
}

// What is wrong with the job as a whole.
Error error_of_job(const std::string& message) {
  if (launched_rank() > 0) let_root_report();
  return Error(message);
}

const tandem_transport& transport_of_job(const Registry& registry, int launched) {
  try {
    return registry.transport(default_transport);
  } catch (const Error& failure) {
    throw error_of_job(fmt::format(
        "the launcher has started {} processes, but they cannot exchange messages: {} (the "
        "transport 'mpi' is in the package tandem-mpi, or is built where MPI is installed)",
        launched, failure.what()));
  }
}

// The text of each rank, by rank; called by all ranks.
json of_all_ranks(const Communicator& ranks, const json& own, const char* what, const char* all) {
  const std::string text = own.dump(-1, ' ', false, json::error_handler_t::replace);
  json tree = json::array();
  if (is_root(ranks)) {
    tree.push_back(json::parse(text));
    for (int peer = 1; peer < ranks.size(); ++peer) {
      tree.push_back(json::parse(ranks.receive_text(peer, what)));
    }
  } else {
    ranks.send_text(0, text, what);
  }
  return json::parse(ranks.broadcast_text(tree.dump(), all));
}

RankHosts find_hosts(const Communicator& ranks) {
  const json mine = json::array({host_name(), processors()});
  const json all = of_all_ranks(ranks, mine, "its host", "the hosts of all ranks");
  RankHosts hosts;
  for (const json& one : all) hosts.names.push_back(one.at(0).get<std::string>());
  hosts.sharing = static_cast<int>(std::count(all.begin(), all.end(), mine));
  return hosts;
}

// Error on all ranks if one was started with other inputs than rank 0.
void require_same_inputs(const Communicator& ranks, const GivenOptions& given) {
  const RankInputs mine = inputs_of(host_name(), given);
  const json all = of_all_ranks(ranks, json::array({mine.host, mine.options, mine.files}),
                                "its options and files", "the options and files of all ranks");
  std::vector<RankInputs> inputs;
  for (const json& one : all) inputs.push_back({one.at(0), one.at(1), one.at(2)});
  const std::string differs = different_inputs(inputs);
  if (differs.empty()) return;
  ranks.abort();
  throw error_of_job(differs);
}

// A launcher starts the ranks together, so that the transport opens within seconds. Where a rank is
// missing, the call that opens it never returns: then its thread is left behind.
std::unique_ptr<Communicator> open_transport(const tandem_transport& transport, int launched,
                                             double watchdog_seconds) {
  using Opened = std::promise<std::unique_ptr<Communicator>>;
  const auto opened = std::make_shared<Opened>();
  std::future<std::unique_ptr<Communicator>> result = opened->get_future();
  std::thread opening([&transport, opened, watchdog_seconds] {
    try {
      opened->set_value(std::make_unique<Communicator>(transport, watchdog_seconds));
    } catch (...) {
      opened->set_exception(std::current_exception());
    }
  });
  // In parts, so that time in which this process itself was stopped does not count.
  constexpr int parts = 20;
  for (int part = 0; part < parts; ++part) {
    if (result.wait_for(std::chrono::duration<double>(watchdog_seconds / parts)) ==
        std::future_status::ready) {
      opening.join();
      return result.get();
    }
  }
  opening.detach();
  throw error_of_job(fmt::format(
      "waited {} seconds (--watchdog) for all {} ranks to open transport '{}': one is stopped or "
      "stuck, or its host cannot be reached",
      watchdog_seconds, launched, transport.name));
}

}  // namespace

// The first message of a job besides those of its transport. Its form never changes.
void require_same_version(const Communicator& ranks, const std::string& version) {
  const std::string of_root = ranks.broadcast_text(is_root(ranks) ? version : "", "its version");
  if (version == of_root) return;
  throw error(
      "{}: this is version {} of Tandem, rank 0 has version {}: install the same one on all hosts",
      own_title(ranks), version, of_root);
}

std::string own_title(const Communicator& ranks) {
  return fmt::format("rank {} of {} (host {})", ranks.rank(), ranks.size(), host_name());
}

std::unique_ptr<Communicator> open_ranks(const Registry& registry, int wanted,
                                         double watchdog_seconds, const GivenOptions& given) {
  if (wanted < 0) throw error("--ranks {}: there must be at least 1", wanted);
  const int launched = launched_ranks();
  if (launched == 1) {
    if (wanted <= 1) return nullptr;
    throw error(
        "--ranks {}: this process was started alone; start the job with: mpirun -n {} tandem ...",
        wanted, wanted);
  }
  if (wanted > 0 && wanted != launched) {
    throw error_of_job(
        fmt::format("--ranks {}: the job was started with {} processes", wanted, launched));
  }
  auto ranks = open_transport(transport_of_job(registry, launched), launched, watchdog_seconds);
  if (ranks->size() != launched) {
    throw error_of_job(fmt::format(
        "the launcher has started {} processes, but transport '{}' finds a job of {}: launcher and "
        "library are of two MPIs. Use the mpirun of the MPI that Tandem was built with",
        launched, default_transport, ranks->size()));
  }
  try {
    require_same_version(*ranks, version());
    ranks->set_hosts(find_hosts(*ranks));
    report_crashes_of("tandem: " + own_title(*ranks));
    require_same_inputs(*ranks, given);
  } catch (...) {
    ranks->abort();
    throw;
  }
  return ranks;
}

void require_messages_from(const Registry& registry, const std::string& devices) {
  if (sends_messages(registry.backend(parse_devices(devices, registry).kind))) return;
  throw error(
      "--devices {} is for one process, not for several ranks: these devices send no messages; use "
      "cpu:N",
      devices);
}

void require_supported_by_ranks(const Registry& registry, const TrainOptions& options) {
  const auto refuse = [](bool given, const std::string& option, const char* instead) {
    if (given) throw error("{} is for one process, not for several ranks: {}", option, instead);
  };
  refuse(!options.machine.link.empty(), "--link", "messages between ranks have real links");
  refuse(options.graphs == GraphUse::on, "--graphs on", "leave it out");
  if (!options.devices.empty()) require_messages_from(registry, options.devices);
}

int threads_of_rank(const RankHosts& hosts) {
  return std::max(1, processor_count() / hosts.sharing);
}

std::unique_ptr<Communicator> open_measuring_ranks(const Registry& registry,
                                                   double watchdog_seconds,
                                                   const GivenOptions& given,
                                                   SessionOptions& options) {
  auto ranks = open_ranks(registry, 0, watchdog_seconds, given);
  if (ranks == nullptr) return ranks;
  try {
    const LinkSpec& link = options.machine.link;
    if (link.bandwidth > 0 || link.latency > 0 || options.machine.topology != nullptr) {
      throw error(
          "--link and --topology are for one process, not for several ranks: their messages have "
          "real links");
    }
    if (options.strategy == "auto") {
      throw error("--strategy auto is for one process here, not for several ranks: name one");
    }
    require_messages_from(registry, options.devices);
    const DeviceSpec spec = parse_devices(options.devices, registry);
    options.rank_topology = measured_topology(*ranks, registry, spec, options.machine.threads);
  } catch (const Error&) {
    ranks->abort();
    if (ranks->rank() > 0) let_root_report();
    throw;
  }
  options.ranks = ranks.get();
  options.executor.watchdog_seconds = watchdog_seconds;
  options.finds_links = false;
  if (options.machine.threads == 0) options.machine.threads = threads_of_rank(ranks->hosts());
  return ranks;
}

namespace {

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

void require_same_samples(const Fingerprint& of_root, const Dataset& dataset,
                          const std::string& data, const std::string& split) {
  const Fingerprint mine = fingerprint_of(dataset, file_states(dataset));
  const std::string differs = difference(of_root, mine, dataset, "there");
  if (differs.empty()) return;
  throw error("the data in '{}' (split '{}') are not those of rank 0: {}", data, split, differs);
}

void send_setup(const Communicator& ranks, const TrainSetup& setup) {
  const json tree = {
      {"record", to_json(setup.record)},
      {"net_file", setup.net.file},
      {"net_contents", file_contents(setup.net.file)},
      {"net", write_net(setup.net)},
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
  setup.solver = read_solver_text(tree.at("solver").get<std::string>());
  // A run that goes on has its net in its folder, which rank 0 alone needs.
  if (!options.resume) require_same_net_file(tree.at("net_file"), tree.at("net_contents"));
  setup.strategies = &strategies;
  setup.test_samples = tree.at("test_samples");
  TrainOptions& chosen = setup.record.options;
  chosen.watchdog_seconds = options.watchdog_seconds;
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

void share_first_state(const Communicator& ranks, FirstState& state) {
  std::array<int64_t, 3> numbers{state.is_resumed ? 1 : 0, state.checkpoint.step,
                                 state.checkpoint.metadata["test_due"] == "1" ? 1 : 0};
  ranks.broadcast(numbers.data(), sizeof(numbers), "the state that the run begins with");
  state.is_resumed = numbers[0] != 0;
  state.checkpoint.step = numbers[1];
  state.checkpoint.metadata["test_due"] = numbers[2] != 0 ? "1" : "0";
  broadcast_floats(ranks, state.checkpoint.weights, "the first weights");
  broadcast_floats(ranks, state.checkpoint.state, "the first state of the solver");
  ranks.meet("the first step");
}

KernelChoices share_choices(const Communicator& ranks, int from, const KernelChoices& mine) {
  constexpr const char* what = "the algorithms that it has measured";
  std::string text = ranks.rank() == from ? json(mine).dump() : "";
  if (from != 0 && ranks.rank() == from) ranks.send_text(0, text, what);
  if (from != 0 && is_root(ranks)) text = ranks.receive_text(from, what);
  const std::string of_all = fmt::format("the algorithms that rank {} has measured", from);
  return json::parse(ranks.broadcast_text(text, of_all.c_str())).get<KernelChoices>();
}

std::vector<BadSample> gather_bad_samples(const Communicator& ranks,
                                          const std::vector<BadSample>& mine) {
  constexpr const char* what = "the names of the damaged images that it has met";
  json own = json::array();
  for (const BadSample& sample : mine) own.push_back(json::array({sample.name, sample.reason}));
  std::vector<BadSample> all = mine;
  if (!is_root(ranks)) {
    ranks.send_text(0, own.dump(-1, ' ', false, json::error_handler_t::replace), what);
    return all;
  }
  for (int peer = 1; peer < ranks.size(); ++peer) {
    for (const json& one : json::parse(ranks.receive_text(peer, what))) {
      all.push_back({one.at(0).get<std::string>(), one.at(1).get<std::string>()});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const BadSample& a, const BadSample& b) { return a.name < b.name; });
  const auto is_same = [](const BadSample& a, const BadSample& b) { return a.name == b.name; };
  all.erase(std::unique(all.begin(), all.end(), is_same), all.end());
  return all;
}

int64_t BatchAgreement::agree(float* labels, int64_t rows) {
  const int64_t bytes = rows * static_cast<int64_t>(sizeof(float));
  std::array<int64_t, 2> word{};
  constexpr const char* what = "the labels of a batch";
  if (is_root(ranks_)) {
    std::vector<float> others(static_cast<size_t>(rows));
    for (int peer = 1; peer < ranks_.size(); ++peer) {
      ranks_.receive(peer, others.data(), bytes, what);
      for (int64_t row = 0; row < rows; ++row) {
        if (std::isnan(labels[row])) labels[row] = others[static_cast<size_t>(row)];
      }
    }
    word[0] = std::count_if(labels, labels + rows, [](float label) { return label >= 0; });
    word[1] = stop_ != nullptr && *stop_ ? 1 : 0;
  } else {
    ranks_.send(0, labels, bytes, what);
  }
  ranks_.broadcast(word.data(), sizeof(word), "the size of a batch");
  stopping_ = word[1] != 0;
  return word[0];
}

}  // namespace tandem
