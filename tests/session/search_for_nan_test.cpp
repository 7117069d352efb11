// The search for a value that is not finite among the samples of an evaluation.
#include <gtest/gtest.h>

#include <atomic>

#include "core/session/evaluate.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

SearchForNan search_in_3000(const std::atomic<bool>& stop) {
  Registry registry = Registry::with_defaults();
  SessionOptions of_session;
  of_session.batch = 300;
  of_session.data = {1, 3, 20, 20};
  Session session(registry, small_net(), of_session);
  DatasetOptions of_data;
  of_data.source = "synthetic";
  of_data.shape = {1, 3, 20, 20};
  of_data.parameters = {{"class_count", "3"}, {"size", "3000"}};
  EvaluateOptions options;
  options.stop = &stop;
  return first_sample_not_finite(session, Dataset(registry, of_data), options);
}

TEST(SearchForNan, EndsAfterSome2000SamplesAndSaysSo) {
  const SearchForNan search = search_in_3000(false);
  EXPECT_EQ(search.found, "");
  EXPECT_EQ(search.samples, 2100);
  EXPECT_TRUE(search.is_cut_short);
}

TEST(SearchForNan, EndsWhereItIsStopped) {
  const SearchForNan search = search_in_3000(true);
  EXPECT_EQ(search.samples, 0);
  EXPECT_TRUE(search.is_cut_short);
}

}  // namespace
}  // namespace tandem::test
