// A loss put together from layers trains as the loss layer of the same formula does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "include/tandem/evaluate.h"
#include "include/tandem/net.h"
#include "include/tandem/predict.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

class SumsAsLoss : public Runs {
 protected:
  // An autoencoder of 16 values; `loss` compares "decode" with "flat".
  static TrainOptions autoencoder(const std::function<void(NetWriter&)>& loss,
                                  const std::string& devices) {
    const std::string filler = " weight_filler { type: \"xavier\" } ";
    NetWriter net("autoencoder");
    net.data(20)
        .layer("flat", "Flatten", {"data"}, {"flat"})
        .layer("encode", "InnerProduct", {"flat"}, {"encode"},
               "inner_product_param { num_output: 16" + filler + "}")
        .layer("sigmoid", "Sigmoid", {"encode"}, {"encode"})
        .layer("decode", "InnerProduct", {"encode"}, {"decode"},
               "inner_product_param { num_output: 1200" + filler + "}");
    loss(net);
    TrainOptions o = options(10);
    o.net_text = net.text();
    o.rate = 0.001;
    o.devices = devices;
    return o;
  }
  static void euclidean(NetWriter& net) {
    net.layer("loss", "EuclideanLoss", {"decode", "flat"}, {"loss"});
  }
  // Half the sum of squares over the 12 samples of the batch.
  static void of_layers(NetWriter& net) {
    net.layer("difference", "Eltwise", {"decode", "flat"}, {"difference"},
              "eltwise_param { operation: SUM coeff: 1 coeff: -1 }")
        .layer("loss", "Reduction", {"difference"}, {"loss"},
               "loss_weight: 0.5 reduction_param { operation: SUMSQ coeff: 0.083333333333 }");
  }
};

TEST_F(SumsAsLoss, TrainLikeTheLossLayerOfTheSameFormula) {
  const TrainOptions expected = autoencoder(euclidean, "cpu:1");
  TrainOptions nothing = expected;
  nothing.rate = 0;
  nothing.steps = 1;
  nothing.out += "_start";
  const Weights start = run(nothing), exact = run(expected);
  for (const char* devices : {"cpu:1", "cpu:3"}) {
    const double difference = max_difference(exact, run(autoencoder(of_layers, devices)), start);
    EXPECT_LE(difference, 1e-4) << devices;
  }
}

TEST_F(SumsAsLoss, WithoutClassesAreTestedByTheirLoss) {
  const TrainOptions o = autoencoder(euclidean, "cpu:1");
  Observer quiet;
  const TrainResult trained = train(o, quiet);
  TestOptions test;
  test.run = trained.run;
  test.data = o.data;
  const TestResult result = test_run(test, quiet);
  EXPECT_EQ(result.evaluation.samples, 15);
  EXPECT_FALSE(result.evaluation.has_accuracy);
  EXPECT_NEAR(result.evaluation.loss, trained.last.loss, 1e-6 * trained.last.loss);
  std::string message;
  try {
    const Predictor predictor(trained.run);
  } catch (const Error& e) {
    message = e.what();
  }
  EXPECT_THAT(message, HasSubstr("net 'autoencoder' gives no class scores"));
}

}  // namespace
}  // namespace tandem::test
