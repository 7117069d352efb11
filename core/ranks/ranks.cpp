#include "core/ranks/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "core/base/processors.h"
#include "core/base/running_note.h"
#include "core/base/text/strings.h"
#include "core/base/version.h"
#include "core/device/machine.h"
#include "core/device/parse.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr const char* default_transport = "mpi";

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

bool is_root(const Communicator& ranks) {
  return ranks.rank() == 0;
}

// The first number above `usual` that one of a launcher's variables has; else `usual`.
int launcher_number(std::initializer_list<const char*> variables, int usual) {
  for (const char* name : variables) {
    const char* text = std::getenv(name);
    double number = 0;
    if (text != nullptr && parse_number(text, &number) && number > usual) {
      return static_cast<int>(number);
    }
  }
  return usual;
}

// What is wrong with the job as a whole.
Error error_of_job(const std::string& message) {
  const int rank = launcher_number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
  if (rank > 0) let_root_report();
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

json to_json(const ProcessorUse& use) {
  json quotas = json::array();
  for (const ProcessorQuota& quota : use.quotas) {
    quotas.push_back(json::array({quota.group, quota.processors}));
  }
  return json::array({use.machine, use.of_machine, use.allowed, quotas});
}

ProcessorUse processor_use(const json& tree) {
  ProcessorUse use{tree.at(0), tree.at(1), tree.at(2), {}};
  for (const json& quota : tree.at(3)) use.quotas.push_back({quota.at(0), quota.at(1)});
  return use;
}

RankHosts find_hosts(const Communicator& ranks) {
  const json mine = json::array({host_name(), to_json(own_processors())});
  const json all = of_all_ranks(ranks, mine, "its host", "the hosts of all ranks");
  RankHosts hosts;
  std::vector<ProcessorUse> users;
  for (const json& one : all) {
    hosts.names.push_back(one.at(0).get<std::string>());
    users.push_back(processor_use(one.at(1)));
  }
  hosts.processors = processor_share(users, size_t(ranks.rank()));
  for (size_t rank = 0; rank < users.size() && hosts.limits.empty(); ++rank) {
    const std::string limits = processor_limits(users, rank);
    if (!limits.empty()) hosts.limits = fmt::format("rank {} has {}", rank, limits);
  }
  return hosts;
}

// What a rank was started with. Rank 0's options and files count for the whole job, so a rank that
// was started with others would train something else than its user meant.
struct RankInputs {
  std::string host;
  GivenOptions options;
  std::map<std::string, std::string> files;  // of options that name one here: what is in it
};

// Without options of which each rank may have its own, and with the files that the others name.
RankInputs inputs_of(const std::string& host, const GivenOptions& options) {
  RankInputs inputs{host, options, {}};
  for (const char* own :
       {"--watchdog", "--check-plugins", "--no-plugin-check", "--plugin-check-without",
        "--test-delays", "--test-delay-ms", "--json", "--display", "--no-report", "--ranks"}) {
    inputs.options.erase(own);
  }
  // The options whose value may be a file. Folders are not looked into; data in folders are
  // compared when they are open.
  for (const char* name :
       {"--class-weights", "--data", "--net", "--paced", "--solver", "--weights", "--topology"}) {
    const auto found = options.find(name);
    if (found == options.end()) continue;
    const std::string contents = file_contents(found->second);
    if (!contents.empty()) inputs.files[found->second] = contents;
  }
  return inputs;
}

std::string option_text(const RankInputs& inputs, const std::string& name) {
  const auto found = inputs.options.find(name);
  if (found == inputs.options.end()) return "without it";
  return found->second.empty() ? "with it" : fmt::format("with '{}'", found->second);
}

// What another rank has that rank 0 has not; "" if nothing. A file that a rank does not have is no
// difference.
std::string difference(const RankInputs& root, const RankInputs& other, int rank) {
  GivenOptions options = root.options;
  options.insert(other.options.begin(), other.options.end());
  for (const auto& [name, value] : options) {
    const std::string mine = option_text(other, name), of_root = option_text(root, name);
    if (mine == of_root) continue;
    return fmt::format(
        "option {}: rank {} (host {}) was started {}, rank 0 (host {}) {}: start all ranks with "
        "the same options",
        name, rank, other.host, mine, root.host, of_root);
  }
  for (const auto& [path, contents] : other.files) {
    const auto found = root.files.find(path);
    if (found == root.files.end() || found->second == contents) continue;
    return fmt::format(
        "file '{}': it has {} for rank {} (host {}), and {} for rank 0 (host {}), whose files all "
        "ranks take: copy it from there, or remove it here",
        path, contents, rank, other.host, found->second, root.host);
  }
  return "";
}

// Error on all ranks if one was started with other inputs than rank 0: of the first such rank.
void require_same_inputs(const Communicator& ranks, const GivenOptions& given) {
  const RankInputs mine = inputs_of(host_name(), given);
  const json all = of_all_ranks(ranks, json::array({mine.host, mine.options, mine.files}),
                                "its options and files", "the options and files of all ranks");
  std::vector<RankInputs> inputs;
  for (const json& one : all) inputs.push_back({one.at(0), one.at(1), one.at(2)});
  for (int rank = 1; rank < ranks.size(); ++rank) {
    const std::string differs = difference(inputs[0], inputs[size_t(rank)], rank);
    if (differs.empty()) continue;
    ranks.abort();
    throw error_of_job(differs);
  }
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

void let_root_report() {
  std::this_thread::sleep_for(std::chrono::seconds(3));
}

// The variables are those of Open MPI, of MPICH and Intel MPI, and of Slurm's srun.
int launched_ranks() {
  return launcher_number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
}

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

int decode_threads_of(const Communicator* ranks, int given) {
  const int processors = ranks == nullptr ? 0 : ranks->hosts().processors;
  return given > 0 || processors == 0 ? given : std::max(2, processors / 2);
}

std::string core_limits(const Communicator* ranks) {
  const std::string limits =
      ranks == nullptr ? processor_limits({own_processors()}, 0) : ranks->hosts().limits;
  return limits.empty() ? "" : "cores: " + limits;
}

}  // namespace tandem
