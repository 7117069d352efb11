// bench_onnx FILE...: each net of an ONNX file FILE.onnx is read and run on the image in
// FILE.onnx.x; its scores are compared with those in FILE.onnx.y (float32). bench/onnx_models.py
// writes such files of published architectures and runs this program.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/formats/onnx_reader/reader.h"
#include "core/model/net/initial_weights.h"
#include "core/run/weights/pretrained.h"
#include "core/session/net_runner.h"

namespace tandem {
namespace {

std::vector<float> read_floats(const std::string& file) {
  const InputFile input(file);
  std::vector<float> values(size_t(input.size()) / sizeof(float));
  if (input.read(0, values.data(), values.size() * sizeof(float)) != input.size()) {
    throw error("'{}' is no file of float32 values", file);
  }
  return values;
}

// The largest difference of the scores, as a share of the largest score.
double difference(const std::string& file) {
  const OnnxImport onnx = import_onnx(file, std::array{1.0, 1.0, 1.0});
  Registry registry = Registry::with_defaults();
  SessionOptions options;
  options.data = onnx.net.input_shape();
  options.training = false;
  Session session(registry, onnx.net, options);
  std::vector<float> weights = initial_weights(session.net(), 1);
  const Pretrained report = copy_arrays(onnx.arrays, file, session.net(), &weights);
  if (!report.missing.empty()) throw error("{}: no weights for {}", file, report.missing.front());
  session.set_weights(weights);
  NetRunner runner(session);
  const std::vector<float> image = read_floats(file + ".x"), right = read_floats(file + ".y");
  std::vector<float> scores(static_cast<size_t>(runner.classes()));
  if (static_cast<int64_t>(image.size()) != runner.row_elements() ||
      scores.size() != right.size()) {
    throw error("{}: the image or the scores are of another size", file);
  }
  runner.run(image.data(), 1, scores.data());
  double largest = 0, away = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    if (!std::isfinite(scores[i]) || !std::isfinite(right[i])) {
      throw error("{}: score {} is {} and should be {}", file, i, scores[i], right[i]);
    }
    largest = std::max(largest, std::abs(static_cast<double>(right[i])));
    away = std::max(away, std::abs(static_cast<double>(right[i]) - scores[i]));
  }
  return away / largest;
}

}  // namespace
}  // namespace tandem

int main(int count, char** files) {
  int failures = 0;
  for (int i = 1; i < count; ++i) {
    try {
      fmt::print("{}: {:.1e}\n", files[i], tandem::difference(files[i]));
    } catch (const std::exception& failure) {
      fmt::print("{}: {}\n", files[i], failure.what());
      ++failures;
    }
  }
  return failures == 0 ? 0 : 1;
}
