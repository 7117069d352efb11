// Links between devices of several ranks: open for all or for none, the bits they carry, and their
// end. The ranks are threads here, and a link is a queue.
#include "core/device/device_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "core/base/error.h"
#include "core/plugin/host.h"
#include "tests/support/thread_links.h"
#include "tests/support/thread_transport.h"

namespace tandem {
namespace {

using test::ThreadLinks;
using test::ThreadWorld;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr double long_wait = 60, short_wait = 0.3;

// What every rank has before it opens links: all of a rank's thread.
struct Rank {
  Rank(ThreadWorld& world, const Registry& with, int number, double seconds)
      : registry(with), machine(with.backend("cpu"), {"cpu", {0}, true}, options()) {
    world.join(number);
    ranks.emplace(ThreadWorld::transport(), seconds);
    ranks->set_hosts({{"a", "b", "c"}, 1});
  }
  static MachineOptions options() {
    MachineOptions result;
    result.threads = 1;
    return result;
  }

  const Registry& registry;
  Machine machine;
  std::optional<Communicator> ranks;
};

// Runs function(rank) as so many ranks, each on a thread of its own.
template <class Function>
void run_ranks(
    int count, double seconds, const Function& function,
    const std::function<Registry(int)>& registry_of = [](int) {
      return ThreadLinks::registry_with("cpu");
    }) {
  ThreadWorld world(count);
  std::vector<Registry> registries;
  for (int number = 0; number < count; ++number) {
    registries.push_back(registry_of(number));
    static_cast<void>(registries.back().backend("cpu"));
  }
  std::vector<std::thread> threads;
  for (int number = 0; number < count; ++number) {
    threads.emplace_back([&, number] {
      Rank rank(world, registries[static_cast<size_t>(number)], number, seconds);
      function(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Channel n goes from rank n to the next one.
DeviceLinks::Ends ends_of_ring(const Communicator& ranks) {
  const int me = ranks.rank(), size = ranks.size(), before = (me + size - 1) % size;
  return {{me, {(me + 1) % size, false, 0}}, {before, {before, true, 0}}};
}

// `count` channels from rank 0 to rank 1.
DeviceLinks::Ends ends_of_pair(const Communicator& ranks, int count) {
  DeviceLinks::Ends ends;
  for (int channel = 0; channel < count; ++channel) {
    ends[channel] = {1 - ranks.rank(), ranks.rank() == 1, 0};
  }
  return ends;
}

// A transfer as a work of a stream.
struct Transfer {
  std::shared_ptr<DeviceLink> link;
  void* memory;
  int64_t bytes;

  static tandem_status run(void* context, const tandem_call* call) {
    const Transfer& self = *static_cast<Transfer*>(context);
    return self.link->transfer(*call, self.memory, self.bytes);
  }
  void submit(const Stream& stream) {
    stream.submit({sizeof(tandem_work), TANDEM_WORK_COMPUTE, "transfer", -1, &run, this});
  }
};

std::vector<int> numbers_of(int rank) {
  std::vector<int> numbers(5000);
  std::iota(numbers.begin(), numbers.end(), 1000000 * rank);
  return numbers;
}

TEST(DeviceLinks, CarryTheBitsOfEachRankToTheNext) {
  ThreadLinks links_of_all;
  run_ranks(3, long_wait, [](Rank& rank) {
    const int me = rank.ranks->rank(), before = (me + 2) % 3;
    const DeviceLinks links(rank.registry, rank.machine, *rank.ranks, ends_of_ring(*rank.ranks));
    EXPECT_TRUE(links.are_open());
    EXPECT_EQ(links.text(), "messages between devices: threads of one process");
    std::vector<int> sent = numbers_of(me), received(sent.size());
    const auto bytes = static_cast<int64_t>(sent.size() * sizeof(int));
    const Stream sending(rank.machine, 0, 0, "send"), receiving(rank.machine, 0, 0, "receive");
    Transfer send{links.link(me), sent.data(), bytes};
    Transfer receive{links.link(before), received.data(), bytes};
    send.submit(sending);
    receive.submit(receiving);
    sending.synchronize();
    receiving.synchronize();
    EXPECT_EQ(received, numbers_of(before));
    links.check();
  });
  EXPECT_EQ(links_of_all.opened, 6);
  EXPECT_EQ(links_of_all.closed, 6);
  EXPECT_EQ(links_of_all.aborted, 0);
}

// Rank 2 cannot receive from rank 1: also those that have links already close them.
TEST(DeviceLinks, AreThoseOfAllRanksOrOfNone) {
  ThreadLinks links_of_all;
  links_of_all.refuses = [](int link, bool receives) {
    return link == 1 && receives ? "no room" : "";
  };
  run_ranks(3, long_wait, [](Rank& rank) {
    const DeviceLinks links(rank.registry, rank.machine, *rank.ranks, ends_of_ring(*rank.ranks));
    EXPECT_FALSE(links.are_open());
    EXPECT_THAT(links.text(), HasSubstr("messages between devices go through the host's memory: "));
    EXPECT_THAT(links.text(), HasSubstr("rank 1: the other end does not come"))
        << "the first rank with a reason";
  });
  EXPECT_EQ(links_of_all.opened, 2) << "of rank 0 and rank 1";
  EXPECT_EQ(links_of_all.aborted, 2);
  EXPECT_EQ(links_of_all.closed, 2);
}

TEST(DeviceLinks, AreNotTriedWhereOneRankHasNoTransport) {
  ThreadLinks links_of_all;
  run_ranks(
      2, long_wait,
      [](Rank& rank) {
        const DeviceLinks links(rank.registry, rank.machine, *rank.ranks,
                                ends_of_pair(*rank.ranks, 1));
        EXPECT_EQ(links.text(),
                  "messages between devices go through the host's memory: rank 1: there is no "
                  "module for messages between devices 'cpu'");
      },
      [](int number) {
        return number == 1 ? Registry::with_defaults() : ThreadLinks::registry_with("cpu");
      });
  EXPECT_EQ(links_of_all.opened, 0);
}

TEST(DeviceLinks, NameThePeerThatDoesNotComeToOpenThem) {
  ThreadLinks links_of_all;
  run_ranks(2, short_wait, [](Rank& rank) {
    if (rank.ranks->rank() == 1) {  // it says that it could have links, and is gone
      rank.ranks->send_text(0, "", "");
      return;
    }
    try {
      const DeviceLinks links(rank.registry, rank.machine, *rank.ranks,
                              ends_of_pair(*rank.ranks, 1));
      ADD_FAILURE() << "they are open";
    } catch (const Error& failure) {
      EXPECT_STREQ(failure.what(),
                   "waited 0.3 seconds (--watchdog) for rank 1 (host b) to send whether it can "
                   "open a link between devices: it is stopped, stuck or slow, or cannot be "
                   "reached");
    }
  });
}

// Rank 1 sends nothing, and then everything ends.
TEST(DeviceLinks, GiveUpATransferThatWaitsLongerThanTheWatchdogAllowsAndNameTheRank) {
  ThreadLinks links_of_all;
  run_ranks(2, short_wait, [](Rank& rank) {
    const bool waits = rank.ranks->rank() == 0;
    const DeviceLinks links(rank.registry, rank.machine, *rank.ranks,
                            {{0, {waits ? 1 : 0, waits, 0}}});
    if (!waits) return;
    int number = 0;
    const tandem_call call{};
    EXPECT_EQ(links.link(0)->transfer(call, &number, sizeof(number)), TANDEM_FAILED);
    EXPECT_EQ(take_reason(),
              "waited 0.3 seconds (--watchdog) for rank 1 (host b) to send a message between "
              "devices: it is stopped, stuck or slow, or cannot be reached");
  });
  EXPECT_EQ(links_of_all.aborted, 1);
}

// Rank 1 does not close its own before rank 0 has done so.
TEST(DeviceLinks, CloseWithinOneWaitForAllOfThem) {
  ThreadLinks links_of_all;
  std::atomic<bool> is_closed{false};
  run_ranks(2, short_wait, [&](Rank& rank) {
    {
      const DeviceLinks links(rank.registry, rank.machine, *rank.ranks,
                              ends_of_pair(*rank.ranks, 4));
      ASSERT_TRUE(links.are_open());
      while (rank.ranks->rank() == 1 && !is_closed) std::this_thread::yield();
    }
    is_closed = true;
  });
  ASSERT_EQ(links_of_all.waits_of_close.size(), 8U);
  const auto& waits = links_of_all.waits_of_close;  // of rank 0 first
  EXPECT_LE(std::accumulate(waits.begin(), waits.begin() + 4, 0.0), short_wait);
}

// As a stream of a machine that was abandoned does.
TEST(DeviceLinks, FailWhatComesAfterTheyAreClosedAndAskTheTransportForNothing) {
  ThreadLinks links_of_all;
  run_ranks(2, long_wait, [](Rank& rank) {
    std::shared_ptr<DeviceLink> link;
    {
      const DeviceLinks links(rank.registry, rank.machine, *rank.ranks,
                              ends_of_pair(*rank.ranks, 1));
      link = links.link(0);
    }
    int number = 0;
    const tandem_call call{};
    EXPECT_EQ(link->transfer(call, &number, sizeof(number)), TANDEM_FAILED);
    EXPECT_EQ(take_reason(), "this rank has closed its links");
    link->abort();
    EXPECT_EQ(link->check(), TANDEM_OK);
  });
  EXPECT_THAT(links_of_all.calls, UnorderedElementsAre("close to send", "close to receive"));
  EXPECT_EQ(links_of_all.aborted, 0);
}

TEST(DeviceLinks, AreClosedWhenATransferUnderWayHasEnded) {
  ThreadLinks links_of_all;
  run_ranks(2, long_wait, [&](Rank& rank) {
    const bool waits = rank.ranks->rank() == 0;
    std::thread stream;
    {
      DeviceLinks links(rank.registry, rank.machine, *rank.ranks, {{0, {waits ? 1 : 0, waits, 0}}});
      if (waits) {
        stream = std::thread([link = links.link(0)] {
          int number = 0;
          const tandem_call call{};
          EXPECT_EQ(link->transfer(call, &number, sizeof(number)), TANDEM_FAILED);
        });
      }
      links_of_all.wait_for_transfer();
      links.abort();
    }
    if (stream.joinable()) stream.join();
  });
  EXPECT_EQ(links_of_all.closed, 2);
  const auto& calls = links_of_all.calls;
  const auto ends = std::find(calls.begin(), calls.end(), "transfer ends");
  EXPECT_EQ(std::count(ends, calls.end(), "close to receive"), 1) << "after the transfer";
}

}  // namespace
}  // namespace tandem
