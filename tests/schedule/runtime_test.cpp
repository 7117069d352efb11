#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/handmade.h"
#include "tests/support/backend_copy.h"

namespace tandem {
namespace {

using test::compute;
using test::Maker;
using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

struct OnCpu {
  explicit OnCpu(int count, const tandem_backend& backend = test::cpu())
      : machine(backend, test::devices(backend.kind, count), {}), runtime(machine) {}
  void reserve(const Plan& plan, int64_t batch = 8) {
    runtime.reserve(plan, plan_memory(plan), batch);
  }
  [[nodiscard]] std::vector<float> read(const std::string& name, int device, int64_t count) const {
    std::vector<float> values(static_cast<size_t>(count), -1);
    runtime.read_persistent(name, device, values.data(), count * 4);
    return values;
  }

  Machine machine;
  Runtime runtime;
};

// Memory that a task uses: a buffer that none touches takes none.
void add_used(Maker& maker, const std::string& name, int device, int64_t count) {
  const Region region = maker.floats(name, device, count);
  maker.touch("use " + name + std::to_string(device), {compute(device)}, {}, {region});
}

TEST(Runtime, PersistentBuffersStartWithTheirInitialValuesOrZeros) {
  Maker maker(2);
  maker.constant("constants", 1, {1, 2});
  maker.persistent("state", 0, 3);
  maker.persistent("results", -1, 3);
  OnCpu on(2);
  on.reserve(maker.plan);
  EXPECT_THAT(on.read("constants", 1, 2), ElementsAre(1, 2));
  EXPECT_THAT(on.read("state", 0, 3), ElementsAre(0, 0, 0));
  EXPECT_THAT(on.read("results", -1, 3), ElementsAre(0, 0, 0));
}

TEST(Runtime, ASecondPlanFindsWhatTheFirstLeft) {
  Maker maker(1);
  maker.constant("weights", 0, {1, 2});
  OnCpu on(1);
  on.reserve(maker.plan);
  const std::vector<float> trained{3, 4};
  on.runtime.write_persistent("weights", 0, trained.data(), 8);
  on.reserve(maker.plan);
  EXPECT_THAT(on.read("weights", 0, 2), ElementsAre(3, 4));
}

TEST(Runtime, ASecondPlanWithAnotherSizeIsAnError) {
  Maker first(1), second(1);
  first.persistent("weights", 0, 16);
  second.persistent("weights", 0, 32);
  OnCpu on(1);
  on.reserve(first.plan);
  EXPECT_EQ(message_of([&] { on.reserve(second.plan); }),
            "buffer 'weights' of device 0 has 128 bytes in this plan, 64 in an earlier one");
}

TEST(Runtime, OneArenaServesTheLargestPlan) {
  Maker small(1), large(1);
  add_used(small, "a", 0, 1000);
  add_used(large, "b", 0, 5000);
  OnCpu on(1);
  on.reserve(large.plan);
  const std::byte* before = on.runtime.transient(0);
  on.reserve(small.plan);
  EXPECT_NE(before, nullptr);
  EXPECT_EQ(on.runtime.transient(0), before);
}

TEST(Runtime, NamesAnUnknownBufferAndARangeThatExceedsOne) {
  Maker maker(1);
  maker.persistent("weights", 0, 16);
  OnCpu on(1);
  on.reserve(maker.plan);
  float value = 0;
  EXPECT_EQ(message_of([&] { on.runtime.write_persistent("wieghts", 0, &value, 4); }),
            "device 0 has no buffer 'wieghts'");
  EXPECT_THAT(message_of([&] { on.runtime.read_persistent("weights", 0, &value, 4, 62); }),
              HasSubstr("bytes 62 to 66 exceed buffer 'weights'"));
}

TEST(Runtime, APlanForMoreDevicesThanThereAreIsAnError) {
  Maker maker(3);
  OnCpu on(2);
  EXPECT_EQ(message_of([&] { on.reserve(maker.plan); }),
            "the plan is for 3 devices, the machine has 2");
}

// A cpu with one GiB of memory, of which half is free.
tandem_status little_memory(tandem_machine*, int32_t, tandem_device_info* info) {
  info->memory_bytes = int64_t{1} << 30;
  info->available_bytes = int64_t{1} << 29;
  return TANDEM_OK;
}

test::BackendCopy small_backend() {
  test::BackendCopy backend = test::cpu();
  backend.table.device_info = &little_memory;
  return backend;
}

constexpr int64_t mebi_floats = int64_t{1} << 18;  // one MiB

TEST(Runtime, ForecastsWhichBatchFits) {
  const test::BackendCopy backend = small_backend();
  Maker maker(1);
  maker.persistent("weights", 0, 112 * mebi_floats);
  add_used(maker, "activations", 0, 500 * mebi_floats);
  OnCpu on(1, backend);
  EXPECT_EQ(message_of([&] { on.reserve(maker.plan, 100); }),
            "device 0 (cpu) needs 612 MiB, 512 MiB are available; batch 80 fits");
}

TEST(Runtime, TheCpusDevicesShareOneMemory) {
  const test::BackendCopy backend = small_backend();
  Maker maker(2);
  for (const int device : {0, 1}) add_used(maker, "activations", device, 300 * mebi_floats);
  OnCpu on(2, backend);
  EXPECT_EQ(message_of([&] { on.reserve(maker.plan, 6); }),
            "the 2 devices (cpu) need 600 MiB, 512 MiB are available; batch 5 fits");
}

TEST(Runtime, OtherDevicesHaveTheirOwnMemory) {
  test::BackendCopy backend = small_backend();
  backend.table.kind = "other";
  backend.buffers.host_addressable = 0;
  Maker maker(2);
  add_used(maker, "activations", 0, 300 * mebi_floats);
  maker.persistent("weights", 1, 600 * mebi_floats);
  add_used(maker, "activations", 1, 30 * mebi_floats);
  OnCpu on(2, backend);
  EXPECT_EQ(message_of([&] { on.reserve(maker.plan, 6); }),
            "device 1 (other) needs 630 MiB, 512 MiB are available; not even batch 1 fits");
}

}  // namespace
}  // namespace tandem
