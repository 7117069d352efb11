// What must hold for the plan of any strategy; each function fails the test that calls it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/plan.h"
#include "tests/support/races.h"

namespace tandem::test {

inline void expect_no_race(Plan plan) {
  const std::vector<Race> races = find_races(plan);
  EXPECT_TRUE(races.empty()) << races.front().text;
  for (Buffer& buffer : plan.buffers) {
    if (buffer.bytes == 0) buffer.bytes = 256;  // as kernels would fill in saved and scratch
  }
  const MemoryPlan memory = plan_memory(plan);
  const std::vector<Race> shared = find_races(plan, &memory);
  EXPECT_TRUE(shared.empty()) << "where buffers share memory: " << shared.front().text;
}

// Every `stride`-th wait is removed in turn.
inline void expect_each_wait_needed(Plan plan, int stride = 1) {
  int waits = 0;
  const RaceCheck check(plan);
  for (Task& task : plan.tasks) {
    const std::vector<Dependency> all = task.after;
    for (size_t i = 0; i < all.size(); ++i) {
      if (waits++ % stride != 0) continue;
      task.after.erase(task.after.begin() + static_cast<int64_t>(i));
      EXPECT_TRUE(check.has_race(plan))
          << "'" << task.label << "' without waiting for '"
          << plan.tasks[static_cast<size_t>(all[i].task)].label << "'";
      task.after = all;
    }
  }
  EXPECT_GT(waits, 0);
}

// A copy or pass that reads bytes which no task of the step wrote would train on the step before.
// Between what is written may lie fewer bytes than `gap`: padding to 64 bytes, and in a net with
// arrays that are not trained their place, which travels with the gradients on either side.
inline void expect_written_before_read(const Plan& plan, int64_t gap = 64) {
  std::map<int, std::vector<Region>> written;
  const auto is_written = [&](const Region& region) {
    int64_t begin = region.offset;
    const int64_t end = begin + plan.bytes(region);
    for (bool grows = true; grows && begin < end;) {
      grows = false;
      for (const Region& w : written[region.buffer]) {
        const int64_t w_end = w.offset + plan.bytes(w);
        if (w.offset - begin >= gap || w_end <= begin) continue;
        begin = w_end;
        grows = true;
      }
    }
    return end - begin < 64;
  };
  for (const Task& task : plan.tasks) {
    for (const Region& region : task.reads) {
      const Buffer& buffer = plan.buffers[static_cast<size_t>(region.buffer)];
      if (buffer.kind != BufferKind::transient || plan.bytes(region) == 0) continue;
      EXPECT_TRUE(is_written(region))
          << "'" << task.label << "' reads '" << buffer.name << "' @" << buffer.device;
    }
    for (const Region& region : task.writes) written[region.buffer].push_back(region);
  }
}

// A loss that is not finite stops the updates of its own step on every device.
inline void expect_updates_know_of_the_loss(const Plan& plan) {
  std::set<int> informed;  // devices
  for (const Task& task : plan.tasks) {
    for (const Region& region : task.writes) {
      const Buffer& buffer = plan.buffers[static_cast<size_t>(region.buffer)];
      if (buffer.name == buffers::found_inf) informed.insert(buffer.device);
    }
    if (!std::holds_alternative<UpdateWork>(task.work)) continue;
    EXPECT_TRUE(informed.contains(task.streams[0].device)) << task.label;
  }
}

inline void expect_passes_on_compute_streams_only(const Plan& plan) {
  for (const Task& task : plan.tasks) {
    if (std::holds_alternative<AddWork>(task.work)) continue;  // on the device that needs the sum
    const bool computes = std::holds_alternative<LayerWork>(task.work);
    for (const StreamId& stream : task.streams) {
      EXPECT_EQ(stream.kind == StreamKind::compute, computes) << task.label;
      // Input and what stays on a device must not wait for a link.
      const bool is_copy = std::holds_alternative<CopyWork>(task.work);
      if (is_copy && task.streams.size() > 1) {
        EXPECT_NE(stream.kind, StreamKind::copy) << task.label;
      }
    }
  }
}

}  // namespace tandem::test
