// Predictions for programs: one predictor serves several threads, and no exception leaves its C
// functions.
#include "include/tandem/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "core/report/findings.h"
#include "include/tandem/predict.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

constexpr int side = 24;

std::vector<uint8_t> drawn_picture(uint64_t seed) {
  Random random(seed, 1);
  std::vector<uint8_t> bytes(side * side * 3);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  return bytes;
}

tandem_picture picture_of(const std::vector<uint8_t>& bytes) {
  return {sizeof(tandem_picture), side, side, 3, bytes.data(), bytes.size()};
}

TEST(Scores, OfALogarithmMayBeNegativeInfinity) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float logarithms[] = {0, -infinity, -infinity}, none[] = {-infinity, -infinity},
              overflow[] = {1, infinity}, nan[] = {0, std::nanf("")};
  EXPECT_TRUE(are_usable(logarithms, 3));
  EXPECT_FALSE(are_usable(none, 2));
  EXPECT_FALSE(are_usable(overflow, 2));
  EXPECT_FALSE(are_usable(nan, 2));
}

class InC : public Runs {
 protected:
  void SetUp() override {
    Runs::SetUp();
    if (IsSkipped()) return;
    TrainOptions o = options(3);
    Observer quiet;
    run_ = train(o, quiet).run;
  }
  [[nodiscard]] tandem_predictor* open(int32_t batch = 4) const {
    return tandem_predictor_open(run_.c_str(), nullptr, nullptr, batch);
  }
  std::filesystem::path run_;
};

TEST_F(InC, APictureInMemoryGivesThePredictionOfItsFile) {
  const std::string text = read_text(run_.parent_path() / "data/val/b/val1_2.ppm");
  Predictor predictor(run_);
  const auto expected = predictor.predict({run_.parent_path() / "data/val/b/val1_2.ppm"}).at(0);
  tandem_predictor* opened = open(32);
  ASSERT_NE(opened, nullptr) << tandem_predictor_error();
  ASSERT_EQ(tandem_predictor_class_count(opened), 3);
  const size_t head = text.size() - side * side * 3;
  const tandem_picture pictures[] = {
      {sizeof(tandem_picture), 0, 0, 0, text.data(), text.size()},
      {sizeof(tandem_picture), side, side, 3, text.data() + head, text.size() - head}};
  EXPECT_EQ(tandem_predictor_has_probabilities(opened), 1);
  float probabilities[6] = {};
  EXPECT_EQ(tandem_predictor_run(opened, pictures, 2, probabilities), 0);
  for (const auto& score : expected.scores) {
    for (int32_t i = 0; i < 3; ++i) {
      if (score.name != tandem_predictor_class_name(opened, i)) continue;
      EXPECT_EQ(probabilities[i], static_cast<float>(score.value));
      EXPECT_EQ(probabilities[3 + i], static_cast<float>(score.value));
    }
  }
  tandem_predictor_close(opened);
}

TEST_F(InC, ANetThatLearnsNoProbabilitiesHasScores) {
  EXPECT_TRUE(Predictor(run_).has_probabilities());
  TrainOptions o = options(3);
  const size_t loss = o.net_text.find("SoftmaxWithLoss");
  o.net_text.replace(loss, std::string("SoftmaxWithLoss").size(), "HingeLoss");
  Observer quiet;
  run_ = train(o, quiet).run;
  tandem_predictor* opened = open();
  ASSERT_NE(opened, nullptr) << tandem_predictor_error();
  EXPECT_EQ(tandem_predictor_has_probabilities(opened), 0);
  const std::vector<uint8_t> bytes = drawn_picture(1);
  const tandem_picture picture = picture_of(bytes);
  float scores[3] = {};
  EXPECT_EQ(tandem_predictor_run(opened, &picture, 1, scores), 0);
  EXPECT_GT(std::abs(std::accumulate(scores, scores + 3, 0.0F) - 1), 1e-3F);
  tandem_predictor_close(opened);
  EXPECT_EQ(tandem_predictor_has_probabilities(nullptr), 0);
}

TEST_F(InC, SeveralThreadsGetTheBitsThatOneGets) {
  tandem_predictor* opened = open();
  ASSERT_NE(opened, nullptr) << tandem_predictor_error();
  constexpr size_t threads = 4, each = 7;
  std::vector<std::vector<std::vector<uint8_t>>> pixels(threads);
  std::vector<std::vector<float>> alone(threads, std::vector<float>(each * 3)), together = alone;
  const auto predict = [&](size_t thread, std::vector<float>& results) {
    std::vector<tandem_picture> pictures;
    for (const auto& bytes : pixels[thread]) pictures.push_back(picture_of(bytes));
    EXPECT_EQ(tandem_predictor_run(opened, pictures.data(), each, results.data()), 0);
  };
  for (size_t t = 0; t < threads; ++t) {
    for (size_t i = 0; i < each; ++i) pixels[t].push_back(drawn_picture(t * each + i));
    predict(t, alone[t]);
  }
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) predict(t, together[t]);
    });
  }
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(together, alone);
  EXPECT_NE(alone[0], alone[1]);
  tandem_predictor_close(opened);
}

TEST_F(InC, FilesAndPicturesInMemoryArePredictedAtTheSameTime) {
  const std::filesystem::path file = run_.parent_path() / "data/val/b/val1_2.ppm";
  const std::string text = read_text(file);
  Predictor predictor(run_);
  (void)predictor.explain(run_.parent_path() / "explained");
  const auto of_file = [&] {
    const Prediction prediction = predictor.predict({file}).at(0);
    std::vector<double> all;
    for (const auto& score : prediction.scores) all.push_back(score.value);
    return all;
  };
  const auto in_memory = [&] {
    std::vector<float> all(3);
    std::vector<std::string> errors;
    predictor.scores({{text.data(), text.size(), 0, 0, 0}}, all.data(), &errors);
    return all;
  };
  const auto file_alone = of_file();
  const auto memory_alone = in_memory();
  std::vector<std::thread> running;
  for (int t = 0; t < 4; ++t) {
    running.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        if (t % 2 == 0) {
          EXPECT_EQ(of_file(), file_alone);
        } else {
          EXPECT_EQ(in_memory(), memory_alone);
        }
      }
    });
  }
  for (std::thread& thread : running) thread.join();
}

TEST_F(InC, ADamagedPictureIsCountedAndTheOthersArePredicted) {
  tandem_predictor* opened = open();
  ASSERT_NE(opened, nullptr) << tandem_predictor_error();
  const std::vector<uint8_t> good = drawn_picture(1);
  const std::string bad = "no picture";
  const tandem_picture pictures[] = {picture_of(good),
                                     {sizeof(tandem_picture), 0, 0, 0, bad.data(), bad.size()},
                                     picture_of(good)};
  float p[9] = {};
  EXPECT_EQ(tandem_predictor_run(opened, pictures, 3, p), 1);
  EXPECT_THAT(tandem_predictor_error(), HasSubstr("picture 1: "));
  EXPECT_NEAR(std::accumulate(p, p + 3, 0.0), 1, 1e-5);
  EXPECT_THAT(std::vector<float>(p + 3, p + 6), testing::Each(0.0F));
  EXPECT_EQ(std::vector<float>(p, p + 3), std::vector<float>(p + 6, p + 9));
  tandem_predictor_close(opened);
}

TEST_F(InC, AFailureHasAReasonAndNoException) {
  EXPECT_EQ(tandem_predictor_open("no/such/run", nullptr, nullptr, 0), nullptr);
  EXPECT_THAT(tandem_predictor_error(), HasSubstr("no/such/run"));
  EXPECT_EQ(tandem_predictor_open(nullptr, nullptr, nullptr, 0), nullptr);
  EXPECT_THAT(tandem_predictor_error(), HasSubstr("run is NULL"));
  tandem_predictor* opened = open();
  ASSERT_NE(opened, nullptr) << tandem_predictor_error();
  const std::vector<uint8_t> bytes = drawn_picture(1);
  tandem_picture picture = picture_of(bytes);
  float p[3] = {};
  picture.bytes -= 1;
  EXPECT_EQ(tandem_predictor_run(opened, &picture, 1, p), -1);
  EXPECT_THAT(tandem_predictor_error(), HasSubstr("picture 0 has 1727 bytes"));
  picture = picture_of(bytes);
  picture.struct_size = 0;
  EXPECT_EQ(tandem_predictor_run(opened, &picture, 1, p), -1);
  EXPECT_THAT(tandem_predictor_error(), HasSubstr("struct_size"));
  EXPECT_EQ(tandem_predictor_class_name(opened, 3), nullptr);
  tandem_predictor_close(opened);
  tandem_predictor_close(nullptr);
}

}  // namespace
}  // namespace tandem::test
