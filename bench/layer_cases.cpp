#include "bench/layer_cases.h"

namespace tandem::bench {

namespace {

using Parameters = decltype(LayerCase::parameters);

std::vector<LayerCase> alexnet(int64_t n) {
  const Parameters norm{{"alpha", {"0.0001"}}};
  const Parameters pool{{"kernel_size", {"3"}}, {"stride", {"2"}}};
  const auto convolution = [](const char* outputs, const char* kernel, const char* stride,
                              const char* pad, const char* group) {
    return Parameters{{"num_output", {outputs}},
                      {"kernel_size", {kernel}},
                      {"stride", {stride}},
                      {"pad", {pad}},
                      {"group", {group}}};
  };
  return {
      {"conv1", "Convolution", {n, 3, 227, 227}, convolution("96", "11", "4", "0", "1")},
      {"relu1", "ReLU", {n, 96, 55, 55}, {}},
      {"norm1", "LRN", {n, 96, 55, 55}, norm},
      {"pool1", "Pooling", {n, 96, 55, 55}, pool},
      {"conv2", "Convolution", {n, 96, 27, 27}, convolution("256", "5", "1", "2", "2")},
      {"norm2", "LRN", {n, 256, 27, 27}, norm},
      {"pool2", "Pooling", {n, 256, 27, 27}, pool},
      {"conv3", "Convolution", {n, 256, 13, 13}, convolution("384", "3", "1", "1", "1")},
      {"conv4", "Convolution", {n, 384, 13, 13}, convolution("384", "3", "1", "1", "2")},
      {"conv5", "Convolution", {n, 384, 13, 13}, convolution("256", "3", "1", "1", "2")},
      {"pool5", "Pooling", {n, 256, 13, 13}, pool},
      {"flat5", "Reorder", {n, 256, 6, 6}, {}},
      {"fc6", "InnerProduct", {n, 256, 6, 6}, {{"num_output", {"4096"}}}},
      {"drop6", "Dropout", {n, 4096, 1, 1}, {}},
      {"fc7", "InnerProduct", {n, 4096, 1, 1}, {{"num_output", {"4096"}}}},
      {"fc8", "InnerProduct", {n, 4096, 1, 1}, {{"num_output", {"1000"}}}},
  };
}

// Of other nets, at the sizes where algorithms differ.
std::vector<LayerCase> convolutions(int64_t n) {
  const auto square = [](const char* outputs, const char* kernel, const char* pad) {
    return Parameters{{"num_output", {outputs}}, {"kernel_size", {kernel}}, {"pad", {pad}}};
  };
  return {
      {"cifar1", "Convolution", {n, 3, 32, 32}, square("32", "5", "2")},
      {"cifar2", "Convolution", {n, 32, 16, 16}, square("32", "5", "2")},
      {"cifar3", "Convolution", {n, 32, 8, 8}, square("64", "5", "2")},
      {"google3", "Convolution", {n, 64, 56, 56}, square("192", "3", "1")},
      {"google5", "Convolution", {n, 16, 28, 28}, square("32", "5", "2")},
      {"res2", "Convolution", {n, 64, 56, 56}, square("64", "3", "1")},
      {"res5", "Convolution", {n, 512, 7, 7}, square("512", "3", "1")},
      {"few2x2", "Convolution", {n, 512, 2, 2}, square("512", "3", "1")},
      {"few1x1", "Convolution", {n, 512, 1, 1}, square("512", "3", "1")},
  };
}

// Convolutions with few channels for each output, or with gaps between the points of their kernels.
std::vector<LayerCase> thin_convolutions(int64_t n) {
  const auto square = [](const char* outputs, const char* kernel, const char* pad,
                         const char* group, const char* stride, const char* dilation) {
    return Parameters{
        {"num_output", {outputs}}, {"kernel_size", {kernel}}, {"pad", {pad}},
        {"group", {group}},        {"stride", {stride}},      {"dilation", {dilation}}};
  };
  return {
      {"next2", "Convolution", {n, 128, 56, 56}, square("128", "3", "1", "32", "1", "1")},
      {"next3s2", "Convolution", {n, 256, 56, 56}, square("256", "3", "1", "32", "2", "1")},
      {"next3", "Convolution", {n, 256, 28, 28}, square("256", "3", "1", "32", "1", "1")},
      {"next5", "Convolution", {n, 1024, 7, 7}, square("1024", "3", "1", "32", "1", "1")},
      {"dilated4", "Convolution", {n, 256, 28, 28}, square("256", "3", "2", "1", "1", "2")},
      {"dilated12", "Convolution", {n, 512, 28, 28}, square("64", "3", "12", "1", "1", "12")},
      {"rgb", "Convolution", {n, 32, 112, 112}, square("3", "9", "4", "1", "1", "1")},
      {"wide", "Convolution", {n, 100, 28, 28}, square("200", "3", "1", "100", "1", "1")},
      {"mask", "Convolution", {n, 64, 112, 112}, square("1", "3", "1", "1", "1", "1")},
      {"classes", "Convolution", {n, 256, 56, 56}, square("21", "1", "0", "1", "1", "1")},
  };
}

std::vector<LayerCase> poolings(int64_t n) {
  const Shape image{n, 192, 28, 28};
  const auto pool = [](const char* stride, const char* pad) {
    return Parameters{{"kernel_size", {"3"}}, {"stride", {stride}}, {"pad", {pad}}};
  };
  Parameters average = pool("1", "1");
  average["pool"] = {"AVE"};
  return {{"pool3s1", "Pooling", image, pool("1", "1")},
          {"pool3s2", "Pooling", image, pool("2", "0")},
          {"average", "Pooling", image, average}};
}

std::vector<LayerCase> elementwise(int64_t n) {
  const Shape block{n, 64, 56, 56};
  return {
      {"scale", "Scale", block, {{"bias_term", {"true"}}}},
      {"bias", "Bias", block, {}},
      {"bn", "BatchNorm", block, {}},
      {"bnscale", "BatchNormScale", block, {}},
      {"concat", "Concat", block, {}, 2},
      {"sum", "Eltwise", block, {}, 2},
      {"coeff", "Eltwise", block, {{"coeff", {"1", "-1"}}}, 2},
      {"prod", "Eltwise", block, {{"operation", {"PROD"}}}, 2},
      {"max", "Eltwise", block, {{"operation", {"MAX"}}}, 2},
      {"prelu", "PReLU", block, {}},
      {"sigmoid", "Sigmoid", block, {}},
      {"tanh", "TanH", block, {}},
      {"elu", "ELU", block, {}},
      {"swish", "Swish", block, {}},
      {"gelu", "GELU", block, {}},
      {"bnll", "BNLL", block, {}},
  };
}

}  // namespace

std::vector<LayerCase> layer_cases(int64_t n) {
  std::vector<LayerCase> cases = alexnet(n);
  for (const auto& more : {convolutions(n), thin_convolutions(n), poolings(n), elementwise(n)}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

}  // namespace tandem::bench
