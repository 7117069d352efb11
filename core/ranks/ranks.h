// The job of several processes ("ranks"), each with devices of its own: how it is opened, how a
// rank is called, and how its errors end the job. Rank 0 has the user's options, the run folder and
// the log.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/data/fingerprint.h"
#include "core/device/communicator.h"
#include "core/plugin/registry.h"

namespace tandem {

// Options as they were given, by name: {"--batch", "64"}.
using GivenOptions = std::map<std::string, std::string>;

// The job that this process is a rank of; null if it was started alone. `wanted`: the number of
// ranks that the user says there are; 0: any. Errors: another number; a job of a launcher whose
// messages no transport here can send; ranks of different versions of Tandem, or that were started
// with other options or files than rank 0; a rank that is waited for longer than
// `watchdog_seconds`, now or later.
[[nodiscard]] std::unique_ptr<Communicator> open_ranks(const Registry& registry, int wanted,
                                                       double watchdog_seconds,
                                                       const GivenOptions& given = {});

// "rank 1 of 4 (host b)": this process.
[[nodiscard]] std::string own_title(const Communicator& ranks);

// Error unless all ranks have this version of Tandem; called by all.
void require_same_version(const Communicator& ranks, const std::string& version);

// The number of processes that the launcher of this one has started; 1 if it was started alone.
[[nodiscard]] int launched_ranks();

// Error if these devices send no messages to other ranks.
void require_messages_from(const Registry& registry, const std::string& devices);

// Only rank 0 should report an error that all ranks have: the others call this first. The launcher
// ends them when rank 0 has ended.
void let_root_report();

// Calls function(), which is what this process does, as a rank or alone (`ranks` is null). After an
// exception nobody waits for this rank, and the message of the Error that it becomes says which one
// it is, unless that is an Error of rank 0 outside a step, which all ranks have. Without one it
// returns when all ranks have done theirs.
template <class Function>
auto as_rank(const Communicator* ranks, const Function& function) {
  try {
    auto result = function();
    if (ranks != nullptr) ranks->meet("the end");
    return result;
  } catch (const Error& failure) {
    if (ranks == nullptr) throw;
    ranks->abort();
    const bool is_of_step = std::string_view(failure.what()).starts_with("step ");
    if (ranks->rank() == 0 && !is_of_step) throw;
    throw error("{}: {}", own_title(*ranks), failure.what());
  } catch (const std::exception& failure) {
    if (ranks == nullptr) throw;
    ranks->abort();
    const bool is_memory = dynamic_cast<const std::bad_alloc*>(&failure) != nullptr;
    throw error("{}: {}", own_title(*ranks), is_memory ? "out of memory" : failure.what());
  } catch (...) {
    if (ranks != nullptr) ranks->abort();
    throw;
  }
}

// Calls function(), a part of a step, which counts from 1. Of several ranks it may fail on this one
// only: then the message has the step, and the rank where as_rank() adds none.
template <class Function>
auto in_step(const Communicator* ranks, int64_t step, const Function& function) {
  try {
    return function();
  } catch (const Error& failure) {
    if (ranks == nullptr) throw;
    const std::string text = failure.what();
    throw error("{}{}{}", ranks->rank() == 0 ? own_title(*ranks) + ": " : "",
                text.starts_with("step ") ? "" : fmt::format("step {}: ", step), text);
  }
}

// Threads that read images beside the devices of a rank (null: of the only process), unless the
// user has given a number: one for every two of its cores. 0: the loader's own choice.
[[nodiscard]] int decode_threads_of(const Communicator* ranks, int given);

// A line where this process, or the ranks of a machine, may use fewer cores than there are; else
// "".
[[nodiscard]] std::string core_limits(const Communicator* ranks);

}  // namespace tandem
