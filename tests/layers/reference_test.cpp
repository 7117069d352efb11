// Layers compared with float64 vectors, in every layout that their kernels offer. The element-wise
// layers are in elementwise_test.cpp.
#include <gtest/gtest.h>

#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

TEST(Convolution, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("convolution", "Convolution", 2e-6);
}
TEST(InnerProduct, AgreesWithTheReference) {
  expect_reference("inner_product", "InnerProduct");
}
TEST(Relu, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("relu", "ReLU");
}
TEST(Lrn, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("lrn", "LRN", 5e-6);
}
TEST(Pooling, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("pooling", "Pooling");
}
TEST(Softmax, AgreesWithTheReference) {
  expect_reference("softmax", "Softmax", 2e-6);
}
TEST(SoftmaxWithLoss, AgreesWithTheReference) {
  expect_reference("softmax_with_loss", "SoftmaxWithLoss", 2e-6);
}
TEST(Accuracy, AgreesWithTheReference) {
  expect_reference("accuracy", "Accuracy");
}

}  // namespace
}  // namespace tandem::test
