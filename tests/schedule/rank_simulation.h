// All ranks of a plan in one thread: their tasks and messages as changes of bytes, in any order
// that streams, dependencies and messages allow.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/numbers/random.h"
#include "core/schedule/plan/localize.h"
#include "core/schedule/plan/ordering.h"

namespace tandem::test {

// The memory of one rank, and what tasks do to it: copies and messages move bytes, other tasks
// write bytes that depend on their name, on the micro-batch and on all bytes that they declare.
class Bytes {
 public:
  explicit Bytes(const Plan& plan) : plan_(plan) {
    for (const Buffer& buffer : plan.buffers) {
      std::string& all = memory_.emplace_back();
      for (int slot = 0; slot < buffer.slots; ++slot) {
        std::string one(static_cast<size_t>(buffer.bytes), '\0');
        // An external buffer has the same content on every rank.
        for (size_t i = 0; buffer.kind == BufferKind::external && i < one.size(); ++i) {
          one[i] = static_cast<char>(i * 7 + i / 251);
        }
        all += one;
      }
    }
  }

  [[nodiscard]] std::string get(const Region& region, int64_t micro_batch) const {
    const std::string_view all = memory_[size_t(region.buffer)];
    return std::string(all.substr(at(region, micro_batch), size_t(plan_.bytes(region))));
  }
  void set(const Region& region, int64_t micro_batch, std::string_view bytes) {
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), plan_.bytes(region));
    memory_[size_t(region.buffer)].replace(at(region, micro_batch), bytes.size(), bytes);
  }
  [[nodiscard]] const std::string& buffer(int index) const { return memory_[size_t(index)]; }

  void run(const Task& task, int64_t micro_batch) {
    if (!works_in(plan_, task, micro_batch)) return;
    if (const auto* copy = std::get_if<CopyWork>(&task.work)) {
      for (const CopySegment& segment : copy->segments) {
        set(segment.target, micro_batch, get(segment.source, micro_batch));
      }
      return;
    }
    uint64_t hash = std::hash<std::string>()(task.label) + static_cast<uint64_t>(micro_batch);
    for (const auto* regions : {&task.reads, &task.writes}) {
      for (const Region& region : *regions) {
        hash = hash * 31 + std::hash<std::string>()(get(region, micro_batch));
      }
    }
    for (const Region& region : task.writes) {
      std::string bytes(size_t(plan_.bytes(region)), '\0');
      for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<char>((hash >> 8 * (i % 8)) + i / 8);
      }
      set(region, micro_batch, bytes);
    }
  }

 private:
  [[nodiscard]] size_t at(const Region& region, int64_t micro_batch) const {
    const Buffer& buffer = plan_.buffers[size_t(region.buffer)];
    return size_t(micro_batch % buffer.slots * buffer.bytes + region.offset);
  }

  const Plan& plan_;
  std::vector<std::string> memory_;
};

inline const RankMessage* message_of(const Task& task) {
  if (const auto* send = std::get_if<SendWork>(&task.work)) return send;
  return std::get_if<ReceiveWork>(&task.work);
}

// All ranks, whose tasks run in any order that streams, dependencies and messages allow, with two
// micro-batches in flight. A send ends together with its receive, or at once.
class Job {
 public:
  Job(const Plan& plan, const DeviceRanks& ranks, uint64_t seed, bool sends_wait)
      : random_(seed, stream_of("job")), sends_wait_(sends_wait) {
    for (int rank = 0; rank < ranks.count(); ++rank) plans_.push_back(localize(plan, ranks, rank));
    for (const Plan& local : plans_) {
      bytes_.emplace_back(local);
      done_.emplace_back(static_cast<size_t>(micro_batches) * local.tasks.size());
      before_.push_back(stream_predecessors(local));
      left_.push_back(std::vector<size_t>(micro_batches, local.tasks.size()));
    }
    for (int rank = 0; rank < ranks.count(); ++rank) line_up(rank);
  }

  static constexpr int64_t micro_batches = 3;

  void run() {
    for (;;) {
      std::vector<Instance> ready;
      bool is_finished = true;
      for (auto& [stream, queue] : queues_) {
        while (!queue.empty() && is_done(queue.front())) queue.pop_front();
        if (queue.empty()) continue;
        is_finished = false;
        if (is_ready(queue.front())) ready.push_back(queue.front());
      }
      if (is_finished) return;
      ASSERT_FALSE(ready.empty()) << "the ranks wait for each other" << left();
      perform(ready[random_.below(ready.size())]);
    }
  }

  // Every buffer of a rank has what the whole plan's has.
  void expect_same(const Plan& whole, const DeviceRanks& ranks, const Bytes& expected) const {
    std::map<std::pair<int, std::string>, int> global;
    for (size_t i = 0; i < whole.buffers.size(); ++i) {
      global[{whole.buffers[i].device, whole.buffers[i].name}] = static_cast<int>(i);
    }
    for (int rank = 0; rank < static_cast<int>(plans_.size()); ++rank) {
      for (size_t i = 0; i < plan(rank).buffers.size(); ++i) {
        const Buffer& buffer = plan(rank).buffers[i];
        int device = buffer.device;
        for (int d = 0; device >= 0 && d < whole.devices; ++d) {
          if (ranks.of_device[size_t(d)] == rank && ranks.local(d) == buffer.device) device = d;
        }
        EXPECT_TRUE(bytes_[size_t(rank)].buffer(static_cast<int>(i)) ==
                    expected.buffer(global.at({device, buffer.name})))
            << "rank " << rank << ", buffer '" << buffer.name << "' of device " << device;
      }
    }
  }

 private:
  struct Instance {
    int rank, task;
    int64_t micro_batch;
  };

  // Each stream's tasks in their order, and each channel's receives.
  void line_up(int rank) {
    for (int64_t m = 0; m < micro_batches; ++m) {
      for (int t = 0; t < static_cast<int>(plan(rank).tasks.size()); ++t) {
        const Task& task = plan(rank).tasks[size_t(t)];
        const StreamId& stream = task.streams[0];
        queues_[{rank, stream.device, static_cast<int>(stream.kind)}].push_back({rank, t, m});
        if (const auto* work = std::get_if<ReceiveWork>(&task.work)) {
          receives_[{work->peer, rank, work->channel}].push_back({rank, t, m});
        }
      }
    }
  }

  [[nodiscard]] const Plan& plan(int rank) const { return plans_[size_t(rank)]; }
  [[nodiscard]] size_t index(int rank, int64_t m, int task) const {
    return size_t(m) * plan(rank).tasks.size() + size_t(task);
  }
  [[nodiscard]] bool is_done(int rank, int64_t m, int task) const {
    return done_[size_t(rank)][index(rank, m, task)];
  }
  [[nodiscard]] bool is_done(const Instance& i) const {
    return is_done(i.rank, i.micro_batch, i.task);
  }
  [[nodiscard]] const Task& task_of(const Instance& i) const {
    return plan(i.rank).tasks[size_t(i.task)];
  }

  // Without what its messages need.
  [[nodiscard]] bool may_start(const Instance& i) const {
    const auto holds = [&](const Dependency& wait) {
      const int64_t m = i.micro_batch - wait.micro_batches_back;
      return m < 0 || is_done(i.rank, m, wait.task);
    };
    const auto& streams = before_[size_t(i.rank)][size_t(i.task)];
    const auto& after = task_of(i).after;
    if (!std::all_of(streams.begin(), streams.end(), holds)) return false;
    if (!std::all_of(after.begin(), after.end(), holds)) return false;
    return i.micro_batch < 2 || left_[size_t(i.rank)][size_t(i.micro_batch - 2)] == 0;
  }

  // The first open receive of the channel that the send uses.
  [[nodiscard]] Instance receiver_of(const Instance& send) const {
    const RankMessage& message = *message_of(task_of(send));
    const auto found = receives_.find({send.rank, message.peer, message.channel});
    if (found == receives_.end()) return {-1, -1, -1};
    for (const Instance& one : found->second) {
      if (!is_done(one)) return one;
    }
    return {-1, -1, -1};
  }

  [[nodiscard]] bool is_ready(const Instance& i) const {
    if (!may_start(i)) return false;
    const RankMessage* message = message_of(task_of(i));
    if (message == nullptr) return true;
    if (std::holds_alternative<SendWork>(task_of(i).work)) {
      if (!sends_wait_) return true;
      const Instance other = receiver_of(i);
      return other.task >= 0 && may_start(other);
    }
    // With sends that wait, the sender's turn moves the message.
    const auto sent = sent_.find({message->peer, i.rank, message->channel});
    return !sends_wait_ && sent != sent_.end() && !sent->second.empty();
  }

  void perform(const Instance& i) {
    const Task& task = task_of(i);
    if (std::holds_alternative<SendWork>(task.work)) {
      std::string text;
      const RankMessage& message = *message_of(task);
      const bool works = works_in(plan(i.rank), task, i.micro_batch);
      for (const Region& region : message.regions) {
        if (works) text += bytes_[size_t(i.rank)].get(region, i.micro_batch);
      }
      sent_[{i.rank, message.peer, message.channel}].push_back(text);
      mark(i);
      if (!sends_wait_) return;
      const Instance other = receiver_of(i);
      ASSERT_GE(other.task, 0);
      receive(other);
    } else if (std::holds_alternative<ReceiveWork>(task.work)) {
      receive(i);
    } else {
      bytes_[size_t(i.rank)].run(task, i.micro_batch);
      mark(i);
    }
  }

  void receive(const Instance& i) {
    const Task& task = task_of(i);
    const RankMessage& message = *message_of(task);
    std::deque<std::string>& queue = sent_[{message.peer, i.rank, message.channel}];
    ASSERT_FALSE(queue.empty());
    const std::string text = queue.front();
    queue.pop_front();
    mark(i);
    if (!works_in(plan(i.rank), task, i.micro_batch)) {
      EXPECT_TRUE(text.empty()) << task.label;
      return;
    }
    size_t begin = 0;
    for (const Region& region : message.regions) {
      const auto bytes = size_t(plan(i.rank).bytes(region));
      ASSERT_LE(begin + bytes, text.size()) << task.label;
      bytes_[size_t(i.rank)].set(region, i.micro_batch,
                                 std::string_view(text).substr(begin, bytes));
      begin += bytes;
    }
    EXPECT_EQ(begin, text.size()) << task.label;
  }

  void mark(const Instance& i) {
    done_[size_t(i.rank)][index(i.rank, i.micro_batch, i.task)] = true;
    --left_[size_t(i.rank)][size_t(i.micro_batch)];
  }

  [[nodiscard]] std::string left() const {
    std::string text;
    for (int rank = 0; rank < static_cast<int>(plans_.size()); ++rank) {
      for (size_t i = 0; i < done_[size_t(rank)].size(); ++i) {
        if (done_[size_t(rank)][i]) continue;
        const size_t tasks = plan(rank).tasks.size();
        text += fmt::format("; rank {}: '{}' of micro-batch {}", rank,
                            plan(rank).tasks[i % tasks].label, i / tasks);
        break;
      }
    }
    return text;
  }

  Random random_;
  bool sends_wait_;
  std::deque<Plan> plans_;
  std::deque<Bytes> bytes_;
  std::vector<std::vector<bool>> done_;    // by rank, then micro-batch and task
  std::vector<std::vector<size_t>> left_;  // tasks, by rank and micro-batch
  std::map<std::tuple<int, int, int>, std::deque<Instance>> queues_;     // by rank and stream
  std::map<std::tuple<int, int, int>, std::vector<Instance>> receives_;  // by ranks and channel
  std::vector<std::vector<std::vector<Dependency>>> before_;
  std::map<std::tuple<int, int, int>, std::deque<std::string>> sent_;  // by ranks and channel
};

inline void expect_ranks_do_what_one_process_does(const Plan& plan, const DeviceRanks& ranks,
                                                  uint64_t seed) {
  Bytes expected(plan);
  for (int64_t m = 0; m < Job::micro_batches; ++m) {
    for (const Task& task : plan.tasks) expected.run(task, m);
  }
  for (const bool sends_wait : {false, true}) {
    Job job(plan, ranks, seed, sends_wait);
    job.run();
    if (testing::Test::HasFatalFailure()) return;
    job.expect_same(plan, ranks, expected);
  }
}

}  // namespace tandem::test
