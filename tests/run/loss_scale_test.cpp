// A loss scale that the user gives: the run's record keeps it until another is given or the
// precision needs none. Its effect on gradients and updates is tested in
// schedule/precision_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/run/folder/run_folder.h"
#include "core/run/setup/resume.h"
#include "core/run/setup/setup.h"
#include "core/session/session.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

class LossScales : public Runs {
 protected:
  // A run as GPUs leave it: its record says float16, and a scale of 256.
  static std::filesystem::path run_in_float16() {
    const TrainOptions o = options(1);
    (void)run(o);
    const std::filesystem::path record = o.out / "run.json";
    std::stringstream text;
    text << std::ifstream(record).rdbuf();
    std::string changed = text.str();
    for (const auto& [from, to] :
         {std::pair{"\"precision\": \"float32\"", "\"precision\": \"float16\""},
          {"\"loss_scale\": null", "\"loss_scale\": 256.0"}}) {
      const size_t at = changed.find(from);
      if (at == std::string::npos) throw error("no {} in the record", from);
      changed.replace(at, std::string(from).size(), to);
    }
    std::ofstream(record) << changed;
    return o.out;
  }
  TrainSetup resumed(const TrainOptions& o) {
    return resolve_resumed(registry_, o, RunFolder::open(o.out));
  }

  Registry registry_ = Registry::with_defaults();  // has the tables of the setup's data sets
};

TEST_F(LossScales, OfARunStayUntilAnotherIsGiven) {
  TrainOptions rest;
  rest.out = run_in_float16();
  const TrainSetup kept = resumed(rest);
  EXPECT_THAT(kept.record.options.loss_scale, Optional(256.0));
  EXPECT_THAT(kept.messages, Not(Contains(HasSubstr("loss scale"))));
  rest.loss_scale = 64;
  const TrainSetup changed = resumed(rest);
  EXPECT_THAT(changed.record.options.loss_scale, Optional(64.0));
  EXPECT_THAT(changed.messages, Contains("loss scale 64 instead of 256 from here on"));
}

TEST_F(LossScales, EndWithThePrecisionThatNeedsThem) {
  TrainOptions rest;
  rest.out = run_in_float16();
  rest.precision = "bfloat16";
  EXPECT_EQ(resumed(rest).record.options.loss_scale, std::nullopt);
  rest.loss_scale = 64;
  EXPECT_THAT([&] { (void)resumed(rest); },
              testing::ThrowsMessage<Error>(HasSubstr(
                  "--loss-scale 64 applies to --precision float16 only, not to bfloat16")));
}

TEST_F(LossScales, OfASessionReachItsNets) {
  Registry registry = Registry::with_defaults();
  SessionOptions o;
  o.batch = 2;
  EXPECT_EQ(Session(registry, small_net(), o).training().net.loss_scale, 1024);
  o.loss_scale = 128;
  EXPECT_EQ(Session(registry, small_net(), o).training().net.loss_scale, 128);
  o.loss_scale = 100;
  EXPECT_THAT(
      [&] { Session(registry, small_net(), o); },
      testing::ThrowsMessage<Error>(HasSubstr("a loss scale of 100: it must be a power of two")));
}

}  // namespace
}  // namespace tandem::test
