#include "core/session/rank_traces.h"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace tandem {
namespace {

using nlohmann::json;

constexpr int clock_rounds = 20;  // messages to and fro with each rank

// On rank 0: the shift of the peer's clock.
ClockShift compare_with(const Communicator& ranks, int peer, const std::function<double()>& now,
                        double own_uncertainty) {
  ClockShift best{0, std::numeric_limits<double>::infinity()};
  for (int round = 0; round < clock_rounds; ++round) {
    const double sent = now();
    double theirs = 0;
    ranks.send(peer, &sent, sizeof(sent), "a word about its clock");
    ranks.receive(peer, &theirs, sizeof(theirs), "its time");
    const double received = now();
    const double uncertainty = (received - sent) / 2;
    if (uncertainty < best.uncertainty) best = {(sent + received) / 2 - theirs, uncertainty};
  }
  best.uncertainty += own_uncertainty;
  ranks.send(peer, &best, sizeof(best), "how far its clock is off");
  return best;
}

// The tasks that were traced, and when.
json to_tree(const RankTrace& trace) {
  json tasks = json::array(), events = json::array(), host = json::array();
  std::map<int, size_t> numbers;
  for (const TraceEvent& event : trace.events) {
    const auto [entry, is_new] = numbers.try_emplace(event.task, numbers.size());
    events.push_back({entry->second, event.micro_batch, event.start, event.end});
    if (!is_new) continue;
    const Task& task = trace.plan->tasks.at(size_t(event.task));
    json streams = json::array();
    for (const StreamId& stream : task.streams) {
      streams.push_back({stream.device, static_cast<int>(stream.kind)});
    }
    tasks.push_back({task.label,
                     {task.stage.place, task.stage.name, task.stage.color},
                     task.layer,
                     std::move(streams)});
  }
  for (const HostSpan& span : trace.host) {
    host.push_back({span.track, span.name, span.start, span.end});
  }
  return {{"devices", trace.plan->devices},
          {"tasks", std::move(tasks)},
          {"events", std::move(events)},
          {"host", std::move(host)},
          {"shift", {trace.shift.seconds, trace.shift.uncertainty}}};
}

// Of the stages of another rank, which live as long as the program.
std::string_view kept_text(const std::string& text) {
  static std::set<std::string> kept;
  return *kept.insert(text).first;
}

void add(const json& tree, int rank, const std::string& host, JointTrace& joint) {
  const int first_task = static_cast<int>(joint.plan.tasks.size());
  const int first_device = joint.plan.devices;
  joint.plan.devices += tree.at("devices").get<int>();
  const double shift = tree.at("shift").at(0);
  for (const json& one : tree.at("tasks")) {
    Task task;
    task.label = one.at(0);
    const json& stage = one.at(1);
    task.stage = {stage.at(0), kept_text(stage.at(1)), kept_text(stage.at(2))};
    task.layer = one.at(2);
    for (const json& stream : one.at(3)) {
      task.streams.push_back({first_device + stream.at(0).get<int>(),
                              static_cast<StreamKind>(stream.at(1).get<int>())});
    }
    joint.plan.tasks.push_back(std::move(task));
  }
  for (const json& one : tree.at("events")) {
    joint.events.push_back({first_task + one.at(0).get<int>(), one.at(1).get<int64_t>(),
                            one.at(2).get<double>() + shift, one.at(3).get<double>() + shift});
  }
  for (const json& one : tree.at("host")) {
    joint.host.push_back({one.at(0), one.at(1), one.at(2).get<double>() + shift,
                          one.at(3).get<double>() + shift, rank});
  }
  joint.ranks.push_back({host, shift, tree.at("shift").at(1)});
}

}  // namespace

MachineClock::MachineClock(Session& session) {
  using Clock = std::chrono::steady_clock;
  constexpr int rounds = 20;
  const Event event(session.machine());
  Clock::duration shortest = Clock::duration::max();
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point before = Clock::now();
    session.runtime().stream({0, StreamKind::copy}).record(event);
    event.synchronize(-1);
    const Clock::duration time = Clock::now() - before;
    if (time >= shortest) continue;
    shortest = time;
    moment_ = before + time / 2;
    seconds_ = event.time();
  }
  uncertainty_ = std::chrono::duration<double>(shortest).count() / 2;
}

double MachineClock::at(std::chrono::steady_clock::time_point moment) const {
  return seconds_ + std::chrono::duration<double>(moment - moment_).count();
}

ClockShift compare_clocks(const Communicator& ranks, const std::function<double()>& now,
                          double own_uncertainty) {
  if (ranks.rank() == 0) {
    for (int peer = 1; peer < ranks.size(); ++peer) compare_with(ranks, peer, now, own_uncertainty);
    return {};
  }
  for (int round = 0; round < clock_rounds; ++round) {
    double theirs = 0;
    ranks.receive(0, &theirs, sizeof(theirs), "a word about the clocks");
    const double mine = now();
    ranks.send(0, &mine, sizeof(mine), "the time");
  }
  ClockShift shift;
  ranks.receive(0, &shift, sizeof(shift), "how far the clock is off");
  shift.uncertainty += own_uncertainty;
  return shift;
}

JointTrace gather_traces(const Communicator& ranks, const RankTrace& mine) {
  constexpr const char* what = "when its tasks ran";
  // Names come from users' files, whose bytes need not be UTF-8.
  const std::string text = to_tree(mine).dump(-1, ' ', false, json::error_handler_t::replace);
  JointTrace joint;
  if (ranks.rank() > 0) {
    ranks.send_text(0, text, what);
    return joint;
  }
  joint.plan.strategy = mine.plan->strategy;
  joint.plan.net = mine.plan->net;
  joint.plan.batch = mine.plan->batch;
  joint.plan.micro_batches_per_step = mine.plan->micro_batches_per_step;
  joint.plan.devices = 0;
  const std::vector<std::string>& names = ranks.hosts().names;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto index = size_t(rank);
    add(json::parse(rank == 0 ? text : ranks.receive_text(rank, what)), rank,
        index < names.size() ? names[index] : "", joint);
  }
  return joint;
}

}  // namespace tandem
