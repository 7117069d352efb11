// Nets of many branches on the command line. A set-up that is quadratic in them takes minutes
// and is killed; these take seconds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;

const std::string in_time = fmt::format("timeout -s KILL {}", 60 * test::patience);

std::string layer(const std::string& name, const std::string& type, const std::string& rest) {
  return fmt::format("layer {{ name: '{}' type: '{}' {} }}\n", name, type, rest);
}

std::string data(int channels) {
  return layer("data", "Input",
               fmt::format("top: 'data' top: 'label' input_param {{ shape {{ dim: 2 dim: {} dim: 1 "
                           "dim: 1 }} shape {{ dim: 2 }} }}",
                           channels));
}

std::string classifier(const std::string& below) {
  return layer(
      "fc", "InnerProduct",
      fmt::format("bottom: '{}' top: 'fc' inner_product_param {{ num_output: 2 }}", below));
}

const std::string ends_in_loss = layer("loss", "SoftmaxWithLoss", "bottom: 'fc' bottom: 'label'");

void expect_set_up(const std::string& net) {
  const Desk desk;
  desk.write("wide.prototxt", net);
  const Outcome outcome = desk.tandem("net wide.prototxt", in_time);
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
}

TEST(WideNet, OfManySlicesIsSetUpInLinearTime) {
  constexpr int count = 40'000;
  std::string tops, bottoms;
  for (int i = 0; i < count; ++i) {
    tops += fmt::format(" top: 't{}'", i);
    bottoms += fmt::format(" bottom: 't{}'", i);
  }
  expect_set_up(data(count) + layer("slice", "Slice", "bottom: 'data'" + tops) +
                layer("concat", "Concat", "top: 'concat'" + bottoms) + classifier("concat") +
                ends_in_loss);
}

TEST(WideNet, OfManyLayersThatReadOneTensorIsSetUpInLinearTime) {
  std::string layers, bottoms;
  for (int i = 0; i < 20'000; ++i) {
    layers += layer(fmt::format("r{}", i), "ReLU", fmt::format("bottom: 'data' top: 'r{}'", i));
    bottoms += fmt::format(" bottom: 'r{}'", i);
  }
  expect_set_up(data(1) + layers + layer("concat", "Concat", "top: 'concat'" + bottoms) +
                classifier("concat") + ends_in_loss);
}

TEST(WideNet, OfManyLossesIsSetUpInLinearTime) {
  std::string losses;
  for (int i = 0; i < 6'000; ++i) {
    losses += layer(fmt::format("l{}", i), "SoftmaxWithLoss",
                    fmt::format("bottom: 'fc' bottom: 'label' top: 'l{}'", i));
  }
  expect_set_up(data(3) + classifier("data") + losses);
}

}  // namespace
}  // namespace tandem
