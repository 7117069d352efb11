#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>

#include "tests/device/backends.h"

namespace tandem {
namespace {

using test::open_machine;

TEST(CpuMemory, IsAlignedAndZero) {
  const Machine machine = open_machine("cpu");
  for (const int64_t bytes : {0L, 1L, 100L, 1L << 20, (3L << 20) + 5}) {
    const Memory memory(machine, 0, TANDEM_MEMORY_DEVICE, bytes);
    ASSERT_NE(memory.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0U);
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + bytes,
                            [](std::byte value) { return value == std::byte{0}; }));
  }
}

TEST(CpuMemory, IsZeroAlsoWhereOthersWroteBefore) {
  const Machine machine = open_machine("cpu");
  for (const int64_t bytes : {100L, 1L << 20, (2L << 20) - 1, (3L << 20) + 5, 64L << 20}) {
    for (int round = 0; round < 3; ++round) {
      const Memory memory(machine, 0, TANDEM_MEMORY_DEVICE, bytes);
      ASSERT_TRUE(std::all_of(memory.data(), memory.data() + bytes,
                              [](std::byte value) { return value == std::byte{0}; }))
          << bytes << " " << round;
      std::fill_n(memory.data(), bytes, std::byte{0xa5});
    }
  }
}

TEST(CpuMemory, MoreThanThereIsIsAnErrorWithTheSizes) {
  const Machine machine = open_machine("cpu");
  const int64_t too_much = machine.device_info(0).memory_bytes * 2;
  const std::string message =
      test::message_of([&] { Memory(machine, 0, TANDEM_MEMORY_DEVICE, too_much); });
  EXPECT_THAT(message, testing::MatchesRegex(
                           "memory of cpu:0: out of memory: .* MiB asked for, .* MiB available"));
}

TEST(CpuMemory, MoreThanIsAvailableIsRefusedAlthoughTheSystemWouldPromiseIt) {
  const Machine machine = open_machine("cpu");
  const int64_t available = machine.device_info(0).available_bytes;
  EXPECT_THROW(Memory(machine, 0, TANDEM_MEMORY_DEVICE, available + (1 << 28)), Error);
}

TEST(CpuMemory, MovesWithoutBeingFreedTwice) {
  const Machine machine = open_machine("cpu");
  Memory first(machine, 0, TANDEM_MEMORY_DEVICE, 64);
  const std::byte* const address = first.data();
  Memory second(std::move(first));
  EXPECT_EQ(first.data(), nullptr);
  Memory third;
  third = std::move(second);
  EXPECT_EQ(third.data(), address);
  EXPECT_EQ(third.bytes(), 64);
}

TEST(CpuDevice, SaysWhatItIs) {
  const Machine machine = open_machine("cpu");
  const tandem_device_info info = machine.device_info(0);
  EXPECT_STRNE(info.name, "");
  EXPECT_GE(info.threads, 1);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_GT(info.available_bytes, 0);
  EXPECT_LE(info.available_bytes, info.memory_bytes);
  EXPECT_GT(info.peak_flops, 1e9);
  EXPECT_GT(info.memory_bandwidth, 1e9);
}

}  // namespace
}  // namespace tandem
