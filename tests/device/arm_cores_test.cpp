#include "plugins/cpu/arm_cores.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tandem {
namespace {

// As Linux writes /proc/cpuinfo on aarch64.
std::string core_entry(int number, const std::string& implementer, const std::string& part) {
  return "processor\t: " + std::to_string(number) +
         "\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd evtstrm crc32 cpuid\nCPU implementer\t: " +
         implementer + "\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: " + part +
         "\nCPU revision\t: 3\n\n";
}

cpu::ArmProcessor read(const std::string& text) {
  std::istringstream stream(text);
  return cpu::read_arm_processor(stream);
}

TEST(ArmCores, AreNamedByTheirNumbers) {
  const auto name = [](const char* implementer, const char* part) {
    return read(core_entry(0, implementer, part)).name;
  };
  EXPECT_EQ(name("0x41", "0xd08"), "Cortex-A72");
  EXPECT_EQ(name("0x41", "0xd42"), "Cortex-A78AE");
  EXPECT_EQ(name("0x41", "0xd0c"), "Neoverse N1");
  EXPECT_EQ(name("0x41", "0xd4f"), "Neoverse V2");
  EXPECT_EQ(name("0x4e", "0x004"), "Carmel");
  EXPECT_EQ(name("0x61", "0x023"), "Apple M1");
  EXPECT_EQ(name("0x4e", "0xd08"), "core 0xd08 of designer 0x4e");
}

TEST(ArmCores, OfSeveralKindsAreNamedOnceAndCountOnAverage) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += core_entry(i, "0x41", "0xd05");
  for (int i = 4; i < 8; ++i) text += core_entry(i, "0x41", "0xd0b");
  const cpu::ArmProcessor processor = read(text);
  EXPECT_EQ(processor.name, "Cortex-A55, Cortex-A76");
  EXPECT_EQ(processor.flops_per_cycle, 12) << "8 of a vector unit: 4 floats, multiplied and added";
  EXPECT_EQ(read(core_entry(0, "0x41", "0xd0c")).flops_per_cycle, 16);
}

TEST(ArmCores, AreNotSeenInAnotherProcessor) {
  const cpu::ArmProcessor processor = read("processor\t: 0\nmodel name\t: AMD EPYC 7763\n");
  EXPECT_EQ(processor.name, "");
  EXPECT_EQ(processor.flops_per_cycle, 0);
}

}  // namespace
}  // namespace tandem
