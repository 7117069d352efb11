// What backends tell of their links, as the host takes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "core/device/topology.h"
#include "tests/device/backends.h"
#include "tests/support/backend_copy.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two devices, 0 to 1 over two channels, back over the second alone.
std::array<double, 2> bandwidths{4e9, 2e9};
constexpr std::array<double, 4> latencies{0, 1e-5, 2e-5, 0};
std::array<uint32_t, 5> begins{0, 0, 2, 3, 3};
std::array<uint32_t, 3> channels{0, 1, 1};
const std::array<const char*, 2> names{"up (sysfs)", nullptr};

class ToldLinks : public testing::Test {
 protected:
  void SetUp() override {
    bandwidths = {4e9, 2e9};
    begins = {0, 0, 2, 3, 3};
    channels = {0, 1, 1};
    size_ = sizeof(tandem_topology);
    missing_ = 0;
    table_.table.links = &table_.links;
    table_.links.struct_size = sizeof table_.links;
    table_.links.find_topology = [](tandem_machine*,
                                    const tandem_topology** topology) -> tandem_status {
      static tandem_topology table;
      const auto unless = [](int array, const auto* data) {
        return missing_ == array ? nullptr : data;
      };
      table = {size_,
               2,
               unless(1, bandwidths.data()),
               unless(2, latencies.data()),
               unless(3, begins.data()),
               unless(4, channels.data()),
               names.data()};
      *topology = &table;
      return TANDEM_OK;
    };
  }
  std::string refusal() const {
    const Machine machine(table_, {"cpu", {0, 1}}, {});
    try {
      static_cast<void>(find_topology(machine));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  test::BackendCopy table_ = backend("cpu");
  inline static uint32_t size_ = sizeof(tandem_topology);
  inline static int missing_ = 0;  // the array that is NULL, counted from 1
};

TEST_F(ToldLinks, AreChannelsAndPathsWithTheirNames) {
  const Machine machine(table_, {"cpu", {0, 1}}, {});
  const auto topology = find_topology(machine);
  ASSERT_NE(topology, nullptr);
  EXPECT_THAT(topology->devices, ElementsAre("cpu0", "cpu1"));
  EXPECT_EQ(topology->channels[0].name, "up (sysfs)");
  EXPECT_EQ(topology->channels[1].name, "channel 1") << "it was given none";
  EXPECT_THAT(topology->path(0, 1).channels, ElementsAre(0, 1));
  EXPECT_THAT(topology->path(1, 0).channels, ElementsAre(1));
  EXPECT_EQ(topology->bandwidth(0, 1), 2e9);
  EXPECT_EQ(topology->path(1, 0).latency, 2e-5);
  EXPECT_EQ(topology->text, "") << "nobody wrote it";
  EXPECT_EQ(source_text(*topology), "the links of the cpu devices as the backend finds them");
}

TEST_F(ToldLinks, ArePrintedAPairALineWithWhatItPasses) {
  const Machine machine(table_, {"cpu", {0, 1}}, {});
  const std::string table = links_table(*find_topology(machine));
  EXPECT_THAT(table, HasSubstr("cpu0 -> cpu1           2.00      10 us  up (sysfs); channel 1\n"));
  EXPECT_THAT(table, HasSubstr("cpu1 -> cpu0           2.00      20 us  channel 1\n"));
}

TEST_F(ToldLinks, OfOneDeviceAreNotAskedFor) {
  const Machine machine(table_, {"cpu", {0}}, {});
  EXPECT_EQ(find_topology(machine), nullptr);
}

TEST_F(ToldLinks, ThatMakeNoSenseAreTheBackendsFault) {
  bandwidths[1] = 0;
  EXPECT_EQ(refusal(),
            "links of the cpu devices: 'channel 1' has a bandwidth of 0, but it must be above 0");
  bandwidths[1] = 1e9;
  channels[2] = 7;
  EXPECT_EQ(refusal(), "links of the cpu devices: a path has channel 7, but there are 2");
  channels[2] = 1;
  begins = {0, 0, 2, 2, 2};
  EXPECT_EQ(refusal(), "links of the cpu devices: there is no path from cpu1 to cpu0");
}

TEST_F(ToldLinks, WhoseTableIsIncompleteAreTheBackendsFaultToo) {
  size_ = offsetof(tandem_topology, path_channels);
  EXPECT_EQ(refusal(),
            "links of the cpu devices: the table has a struct_size of 32, but it is at least 40");
  size_ = offsetof(tandem_topology, channel_names);
  EXPECT_EQ(refusal(), "") << "a table without names";
  size_ = sizeof(tandem_topology);
  missing_ = 1;
  EXPECT_EQ(refusal(), "links of the cpu devices: the table has no 'bandwidths'");
  missing_ = 2;
  EXPECT_EQ(refusal(), "links of the cpu devices: the table has no 'latencies'");
  missing_ = 3;
  EXPECT_EQ(refusal(), "links of the cpu devices: the table has no 'path_begins'");
  missing_ = 4;
  EXPECT_EQ(refusal(), "links of the cpu devices: the table has no 'path_channels'");
}

TEST_F(ToldLinks, WhosePathsEndBeforeTheyBeginAreNotRead) {
  begins = {0, 0, 2, 1, 3};
  EXPECT_EQ(refusal(),
            "links of the cpu devices: path 2 begins at 2 and ends at 1 of 'path_channels', with 2 "
            "channels");
  begins = {0, 0, 2, 3, 4000000000};
  EXPECT_THAT(refusal(), HasSubstr("path 3 begins at 3 and ends at 4000000000"));
}

TEST_F(ToldLinks, ThatTheBackendDoesNotKnowAreNone) {
  table_.links.find_topology = [](tandem_machine*,
                                  const tandem_topology** topology) -> tandem_status {
    *topology = nullptr;
    return TANDEM_OK;
  };
  EXPECT_EQ(find_topology(Machine(table_, {"cpu", {0, 1}}, {})), nullptr);
  table_.table.links = nullptr;
  EXPECT_EQ(find_topology(Machine(table_, {"cpu", {0, 1}}, {})), nullptr);
}

}  // namespace
}  // namespace tandem::test
