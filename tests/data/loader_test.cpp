#include "core/data/loader.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

#include "tests/data/batches.h"
#include "tests/data/data_sets.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::evaluation;
using test::host_memory;
using test::in_file_order;
using test::message_of;
using test::samples_of;
using test::scripted;
using test::take;
using test::take_all;
using testing::ElementsAre;
using testing::HasSubstr;

// What the net takes beside image and label: made up by the host, and given by the data set.
TEST(Loader, DeliversFurtherInputsRowByRow) {
  DatasetOptions options = test::scripted_options({});
  options.more.push_back({"two", {1, 2, 1, 1}, Filler{.value = 5}});
  options.more.push_back({"three", {1, 3, 1, 1}, std::nullopt});
  options.more.push_back({"noise", {1, 1, 1, 1}, Filler{.type = "gaussian"}});
  options.more.push_back({"as the image", {1, 0, 0, 0}, std::nullopt});
  const Dataset data(test::data_registry(), options);
  EXPECT_EQ(to_string(data.more_shapes()[3]), "1x1x2x2");
  LoaderOptions loading = evaluation(8);  // of 10 samples: the second batch has two
  Loader loader(data, loading, host_memory());
  const BatchLayout& layout = loader.layout();
  const auto input = [&](const Batch& batch, size_t k) {
    return reinterpret_cast<const float*>(batch.memory + layout.more_offsets[k]);
  };
  loader.release(loader.next());
  const Batch last = loader.next();
  EXPECT_EQ(std::vector<float>(input(last, 0), input(last, 0) + 5),
            (std::vector<float>{5, 5, 5, 5, 0}));
  EXPECT_EQ(std::vector<float>(input(last, 1), input(last, 1) + 7),
            (std::vector<float>{8, 8, 8, 9, 9, 9, 0}));
  EXPECT_NE(input(last, 2)[0], input(last, 2)[1]);
  EXPECT_EQ(input(last, 3)[0], 108);
  loader.release(last);
}

TEST(Dataset, WithoutFurtherInputsSaysWhatIsMissing) {
  (void)
      test::scripted();  // its module, which has the plain one too, is loaded when it is asked for
  DatasetOptions options = test::scripted_options({});
  options.source = "plain";
  options.more.push_back({"sim", {1, 1, 1, 1}, std::nullopt});
  EXPECT_EQ(message_of([&] { const Dataset data(test::data_registry(), options); }),
            "data 'plain': gives an image and a label for each sample, but the net also takes "
            "'sim', which data set 'plain' does not have");
}

TEST(BatchLayout, EveryPartBeginsOnAMultipleOf64Bytes) {
  const BatchLayout layout = make_batch_layout(5, {1, 3, 7, 7});
  EXPECT_GE(layout.label_offset, static_cast<int64_t>(sizeof(tandem_step)));
  EXPECT_GE(layout.data_offset, layout.label_offset + 5 * 4);
  EXPECT_GE(layout.bytes, layout.data_offset + 5 * 3 * 7 * 7 * 4);
  EXPECT_EQ(layout.label_offset % 64, 0);
  EXPECT_EQ(layout.data_offset % 64, 0);
  EXPECT_EQ(layout.bytes % 64, 0);
}

TEST(Loader, BatchesAreTheSameForOneThreadAndForFour) {
  const Dataset data =
      scripted({{"size", "37"}, {"bad", "5,11"}, {"slow", "3,20"}, {"delay_ms", "3"}});
  LoaderOptions options;
  options.batch = 10;
  options.bad_share_limit = 1;
  options.threads = 1;
  const auto one = take_all(data, options, 12);
  options.threads = 4;
  EXPECT_EQ(one, take_all(data, options, 12));
}

TEST(Loader, BatchesAreTheSameForEveryLengthOfTheRing) {
  const Dataset data = scripted({{"size", "37"}});
  LoaderOptions options;
  options.batch = 10;
  options.threads = 3;
  options.slots = 1;
  const auto one = take_all(data, options, 9);
  options.slots = 5;
  EXPECT_EQ(one, take_all(data, options, 9));
}

TEST(Loader, ARunThatBeginsAtABatchGoesOnAsTheFullRun) {
  const Dataset data = scripted({{"size", "37"}});
  LoaderOptions options;
  options.batch = 10;
  options.threads = 2;
  const auto full = take_all(data, options, 12);
  options.first_batch = 7;
  const auto rest = take_all(data, options, 5);
  EXPECT_EQ(rest, std::vector(full.begin() + 7, full.end()));
}

TEST(Loader, ASlowSampleDelaysItsBatchButReordersNothing) {
  const Dataset data = scripted({{"size", "40"}, {"slow", "0"}, {"delay_ms", "60"}});
  LoaderOptions options = in_file_order(10);
  options.threads = 4;
  const auto batches = take_all(data, options, 4);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(batches[i].number, static_cast<int64_t>(i));
    EXPECT_EQ(samples_of(batches[i])[0], static_cast<int64_t>(10 * i));
  }
}

// By the order of events: the read does not end before the file is there.
TEST(Loader, AStalledReadHoldsUpItsOwnBatchAndTheRingGoesOnFilling) {
  const test::TempFolder folder;
  const std::string gate = (folder.path() / "gate").string();
  const Dataset data = scripted({{"size", "1000"}, {"gated", "10"}, {"gate", gate}});
  LoaderOptions options = in_file_order(10);
  options.slots = 3;
  options.threads = 2;
  options.timed_count = 4;
  Loader loader(data, options, host_memory());
  const auto wait_until_worked_on = [&](int64_t batch) {
    const auto is_it = [batch](const LoadSpan& span) { return span.batch == batch; };
    for (std::vector<LoadSpan> spans; std::none_of(spans.begin(), spans.end(), is_it);) {
      spans = loader.spans();
      std::this_thread::yield();
    }
  };
  const Batch first = loader.next();  // before the stalled one
  EXPECT_EQ(first.number, 0);
  wait_until_worked_on(2);  // behind it
  loader.release(first);
  wait_until_worked_on(3);  // in the slot that came free meanwhile
  std::future<Batch> stalled = std::async(std::launch::async, [&] { return loader.next(); });
  EXPECT_EQ(stalled.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  (void)folder.write("gate", "open");
  const Batch second = stalled.get();
  EXPECT_EQ(second.number, 1);
  loader.release(second);
  EXPECT_EQ(take(loader).number, 2);
  EXPECT_EQ(take(loader).number, 3);
}

TEST(Loader, TrainingRunsOnIntoTheNextEpoch) {
  const Dataset data = scripted({{"size", "5"}});
  const auto batches = take_all(data, in_file_order(3), 3);
  EXPECT_THAT(samples_of(batches[1]), ElementsAre(3, 4, 0));
  EXPECT_THAT(samples_of(batches[2]), ElementsAre(1, 2, 3));
  EXPECT_EQ(batches[1].epoch, 0);
  EXPECT_EQ(batches[2].epoch, 1);
  EXPECT_EQ(batches[1].samples, 3);
}

TEST(Loader, TheLastBatchOfATestIsFilledUpWithLabelMinusOne) {
  const Dataset data = scripted({{"size", "5"}});
  const auto batches = take_all(data, evaluation(3), 2);
  EXPECT_THAT(batches[1].labels, ElementsAre(1, 0, -1));
  EXPECT_EQ(batches[1].samples, 2);
  EXPECT_EQ(batches[1].pixels[8], 0.0F);
}

TEST(Loader, ASlotIsFilledAnewAfterAPartialBatchWasInIt) {
  // One slot: what the batch before left must not show through.
  const Dataset data = scripted({{"size", "4"}});
  LoaderOptions options = evaluation(3);
  options.slots = 1;
  const auto batches = take_all(data, options, 2);
  EXPECT_THAT(batches[1].labels, ElementsAre(1, -1, -1));
  EXPECT_EQ(batches[1].pixels[4], 0.0F);
}

TEST(Loader, ThereIsNoBatchBeyondTheLast) {
  const Dataset data = scripted({{"size", "5"}});
  Loader test(data, evaluation(3), host_memory());
  (void)take(test);
  (void)take(test);
  EXPECT_THAT(message_of([&] { (void)test.next(); }), HasSubstr("there is no batch 2"));
  LoaderOptions counted = in_file_order(3);
  counted.batch_count = 1;
  Loader training(data, counted, host_memory());
  (void)take(training);
  EXPECT_THAT(message_of([&] { (void)training.next(); }), HasSubstr("there is no batch 1"));
}

TEST(Loader, TheRingNeverHoldsMoreThanItsSlots) {
  const Dataset data = scripted({{"size", "1000"}});
  LoaderOptions options = in_file_order(10);
  options.slots = 2;
  Loader loader(data, options, host_memory());
  const Batch first = loader.next();
  const Batch second = loader.next();
  EXPECT_NE(first.memory, second.memory);
  loader.release(first);
  const Batch third = loader.next();
  EXPECT_EQ(third.memory, first.memory);
  EXPECT_EQ(third.number, 2);
}

TEST(Loader, IsDestroyedWhileTheRingIsFullAndWhileItIsBeingFilled) {
  const Dataset data = scripted({{"size", "1000"}, {"slow", "30,31,32,33,34"}, {"delay_ms", "20"}});
  for (const int batches_taken : {0, 1, 3}) {
    LoaderOptions options = in_file_order(10);
    options.threads = 4;
    Loader loader(data, options, host_memory());
    for (int i = 0; i < batches_taken; ++i) (void)loader.next();
  }
}

TEST(Loader, GivesBackAllMemoryItTook) {
  const Dataset data = scripted();
  std::atomic<int> balance = 0;
  const Loader::Allocator counting{[&](int64_t bytes) {
                                     ++balance;
                                     return std::aligned_alloc(64, static_cast<size_t>(bytes));
                                   },
                                   [&](void* address) {
                                     --balance;
                                     std::free(address);
                                   }};
  {
    Loader loader(data, in_file_order(2), counting);
    EXPECT_EQ(balance, 3);
  }
  EXPECT_EQ(balance, 0);
  const Loader::Allocator poor{
      [&](int64_t bytes) -> void* { return balance == 2 ? nullptr : counting.allocate(bytes); },
      counting.free};
  EXPECT_THAT(message_of([&] { Loader loader(data, in_file_order(2), poor); }),
              HasSubstr("no memory for 3 prefetched batches"));
  EXPECT_EQ(balance, 0);
}

TEST(Loader, ABatchIsReleasedOnce) {
  const Dataset data = scripted();
  Loader loader(data, in_file_order(2), host_memory());
  const Batch batch = loader.next();
  loader.release(batch);
  EXPECT_THAT(message_of([&] { loader.release(batch); }), HasSubstr("not on loan"));
}

TEST(Loader, AbsurdOptionsAreRefused) {
  const Dataset data = scripted();
  EXPECT_THAT(message_of([&] { Loader loader(data, in_file_order(0), host_memory()); }),
              HasSubstr("batch 0 must be at least 1"));
  LoaderOptions options = in_file_order(2);
  options.slots = 0;
  EXPECT_THAT(message_of([&] { Loader loader(data, options, host_memory()); }),
              HasSubstr("0 prefetched batches"));
}

}  // namespace
}  // namespace tandem
