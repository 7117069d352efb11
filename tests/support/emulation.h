// Tests in an emulator of another processor (qemu-user), which takes 10 to 100 times as long.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

namespace tandem::test {

// Whether this program runs in qemu-user: where there are Arm processors, Linux shows their
// numbers.
[[nodiscard]] inline bool is_emulated() {
#if defined(__aarch64__)
  std::error_code code;
  const bool has_numbers =
      std::filesystem::exists("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", code);
  return !has_numbers;
#else
  return false;
#endif
}

}  // namespace tandem::test

// Skips the test in an emulator, for a reason that is printed and counted.
#define TANDEM_SKIP_IF_EMULATED(reason)                                              \
  do {                                                                               \
    if (tandem::test::is_emulated()) GTEST_SKIP() << "in an emulator: " << (reason); \
  } while (false)
