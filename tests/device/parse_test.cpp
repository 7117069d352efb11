#include <gmock/gmock.h>

#include "tests/device/backends.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A backend whose devices are counted, and one whose devices are named by number.
DeviceSpec parsed(const std::string& text) {
  return parse_devices(
      text, {"cpu", "cuda", "sim"}, [](const std::string& kind) { return kind != "cuda"; },
      [](const std::string&) { return 3; });
}

std::string refusal(const std::string& text) {
  return test::message_of([&] { static_cast<void>(parsed(text)); });
}
std::string link_refusal(const std::string& text) {
  return test::message_of([&] { static_cast<void>(parse_link(text)); });
}

TEST(Devices, AKindAloneIsOneDevice) {
  EXPECT_THAT(parsed("cpu").ordinals, ElementsAre(0));
  EXPECT_EQ(parsed("sim").kind, "sim");
}

TEST(Devices, ANumberAfterCpuOrSimSaysHowMany) {
  EXPECT_THAT(parsed("cpu:3").ordinals, ElementsAre(0, 1, 2));
  EXPECT_EQ(parsed("sim:1024").count(), 1024);
}

TEST(Devices, NumbersAfterCudaSayWhichAndMayRepeat) {
  EXPECT_THAT(parsed("cuda:2").ordinals, ElementsAre(2));
  EXPECT_THAT(parsed("cuda:1,0,1").ordinals, ElementsAre(1, 0, 1));
}

TEST(Devices, AreWrittenAsTheyAreRead) {
  for (const char* text : {"cpu:1", "cpu:4", "sim:16", "cuda:0,1", "cuda:0,0"}) {
    EXPECT_EQ(to_string(parsed(text)), text);
  }
}

TEST(Devices, AreCountedWhereTheirBackendSaysSo) {
  EXPECT_EQ(parse_devices("cpu:2", test::backends()).count(), 2);
  EXPECT_EQ(to_string(parse_devices(simulated_devices(3), test::backends())), "sim:3");
}

TEST(Devices, AnUnknownKindNamesTheKnownOnes) {
  EXPECT_THAT(refusal("tpu:2"), AllOf(HasSubstr("tpu:2"), HasSubstr("cpu, cuda, sim")));
  EXPECT_THAT(refusal("cud"), HasSubstr("did you mean 'cuda'"));
  EXPECT_THAT(refusal(""), HasSubstr("unknown kind ''"));
}

TEST(Devices, AGpuIsKnownByItsUsualNamesInAnyCase) {
  for (const char* text : {"gpu", "GPU", "gpus", "GPUs", "CUDA", "Cuda"}) {
    EXPECT_EQ(to_string(parsed(text)), "cuda:0") << text;
  }
  EXPECT_EQ(to_string(parsed("GPU:1,2")), "cuda:1,2");
  EXPECT_EQ(to_string(parsed("CPU:2")), "cpu:2");
  EXPECT_EQ(to_string(parsed("Sim:4")), "sim:4");
}

TEST(Devices, AllGpusAreAsManyAsThereAre) {
  for (const char* text : {"cuda:all", "gpu:ALL", "CUDA:all"}) {
    EXPECT_EQ(to_string(parsed(text)), "cuda:0,1,2") << text;
  }
  EXPECT_THAT(refusal("cpu:all"), HasSubstr("a cpu device computes on all cores: write cpu"));
  EXPECT_THAT(refusal("sim:all"), HasSubstr("as in sim:4"));
}

TEST(Devices, AllIsOneWhereThereIsNoneSoThatTheBackendSaysWhy) {
  const DeviceSpec spec = parse_devices(
      "cuda:all", {"cpu", "cuda"}, [](const std::string&) { return false; },
      [](const std::string&) { return 0; });
  EXPECT_THAT(spec.ordinals, ElementsAre(0));
}

TEST(Devices, AGpuIsNeverMistakenForACpu) {
  const auto without_gpus = [](const std::string& text) {
    return test::message_of([&] {
      static_cast<void>(parse_devices(
          text, {"cpu", "sim"}, [](const std::string&) { return true; },
          [](const std::string&) { return 1; }));
    });
  };
  for (const char* text : {"gpu", "GPUs:0", "GPU"}) {
    EXPECT_THAT(without_gpus(text),
                AllOf(HasSubstr("no backend for GPUs is here"), HasSubstr("known here: cpu, sim")));
  }
  EXPECT_THAT(refusal("0,1"), HasSubstr("did you mean 'cuda:0,1'?"));
  EXPECT_THAT(refusal("gpu0"), HasSubstr("did you mean 'cuda:0'?"));
  EXPECT_THAT(refusal("GPU1"), HasSubstr("did you mean 'cuda:1'?"));
}

TEST(Devices, ABadNumberIsNamedWithWhatWouldBeRight) {
  for (const char* text : {"cpu:0", "cpu:-1", "cpu:x", "cpu:", "cpu:2,3", "cpu:1025", "sim:1.5"}) {
    EXPECT_THAT(refusal(text), AllOf(HasSubstr(text), HasSubstr("from 1 to 1024"))) << text;
  }
  for (const char* text : {"cuda:", "cuda:a", "cuda:0,", "cuda:0,,1", "cuda:-1"}) {
    EXPECT_THAT(refusal(text), AllOf(HasSubstr(text), HasSubstr("as in cuda:0,1"))) << text;
  }
}

TEST(Links, BandwidthAndLatencyTakeUnits) {
  const LinkSpec link = parse_link("bandwidth=4GB/s,latency=10us");
  EXPECT_DOUBLE_EQ(link.bandwidth, 4e9);
  EXPECT_DOUBLE_EQ(link.latency, 10e-6);
  EXPECT_DOUBLE_EQ(parse_link("bandwidth=250MB/s").bandwidth, 250e6);
  EXPECT_DOUBLE_EQ(parse_link("bandwidth=1.5kB/s").bandwidth, 1500);
  EXPECT_DOUBLE_EQ(parse_link("bandwidth=8000B/s").bandwidth, 8000);
  EXPECT_DOUBLE_EQ(parse_link("latency=2ms").latency, 2e-3);
  EXPECT_DOUBLE_EQ(parse_link("latency=30ns").latency, 30e-9);
  EXPECT_DOUBLE_EQ(parse_link("latency=1s").latency, 1);
}

TEST(Links, WhatIsLeftOutIsZero) {
  EXPECT_EQ(parse_link("bandwidth=1GB/s").latency, 0);
  EXPECT_EQ(parse_link("latency=1us").bandwidth, 0);
}

TEST(Links, ABadValueIsNamedWithTheUnits) {
  for (const char* text : {"bandwidth=4", "bandwidth=4GB", "bandwidth=fast",
                           "bandwidth=", "bandwidth", "bandwidth=-1GB/s", "bandwidth=nanGB/s"}) {
    EXPECT_THAT(link_refusal(text), AllOf(HasSubstr(text), HasSubstr("GB/s"))) << text;
  }
  EXPECT_THAT(link_refusal("bandwidth=0GB/s"), HasSubstr("above 0"));
  EXPECT_THAT(link_refusal("latency=10"), HasSubstr("as in 10us"));
}

TEST(Links, AnUnknownFieldIsNamed) {
  EXPECT_THAT(link_refusal("bandwith=1GB/s"), HasSubstr("did you mean 'bandwidth'"));
  EXPECT_THAT(link_refusal(""), HasSubstr("bandwidth=4GB/s,latency=10us"));
}

}  // namespace
}  // namespace tandem
