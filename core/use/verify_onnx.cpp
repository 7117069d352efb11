#include "core/use/verify_onnx.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/numbers/random.h"
#include "core/base/text/strings.h"
#include "core/formats/onnx_reader/reader.h"
#include "core/model/net/initial_weights.h"
#include "core/model/passes/build_net.h"
#include "core/run/weights/pretrained.h"
#include "core/session/net_runner.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr double tolerance = 1e-4;  // of the largest score

// Rows one by one, as a file may be for one image.
constexpr const char* script = R"(
import sys, numpy, onnxruntime
file, rows, scores, *extents = sys.argv[1:]
session = onnxruntime.InferenceSession(file, providers=['CPUExecutionProvider'])
image = session.get_inputs()[0]
x = numpy.fromfile(rows, numpy.float32).reshape([int(e) for e in extents])
x = x.astype({'tensor(double)': numpy.float64, 'tensor(float16)': numpy.float16}.get(image.type, numpy.float32))
if image.shape[3] == x.shape[1] != image.shape[1]:
    x = x.transpose(0, 2, 3, 1)
y = [session.run(None, {image.name: x[i:i + 1]})[0].astype(numpy.float32).ravel() for i in range(len(x))]
numpy.concatenate(y).tofile(scores)
)";

std::vector<float> softmax_of(std::vector<float> scores, size_t rows) {
  const size_t classes = scores.size() / rows;
  for (auto row = scores.begin(); row != scores.end(); row += int64_t(classes)) {
    const float largest = *std::max_element(row, row + int64_t(classes));
    double sum = 0;
    for (size_t i = 0; i < classes; ++i) sum += row[i] = std::exp(row[i] - largest);
    for (size_t i = 0; i < classes; ++i) row[i] = static_cast<float>(row[i] / sum);
  }
  return scores;
}

double difference(const std::vector<float>& found, const std::vector<float>& expected) {
  double largest = 0, away = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double apart = std::abs(static_cast<double>(expected[i]) - found[i]);
    if (!(apart <= away)) away = apart;
  }
  return away / std::max(largest, 1e-30);
}

// Of the two one may be the probabilities of the other, where a Softmax is at the end.
std::string judged(const std::vector<float>& found, const ScoredRows& expected,
                   const fs::path& file, const std::string& where) {
  if (found.size() != expected.scores.size()) {
    throw error("'{}' gives {} scores {}, and not {}", file.string(), found.size(), where,
                expected.scores.size());
  }
  const auto rows = static_cast<size_t>(expected.input.n);
  const double apart = std::min({difference(found, expected.scores),
                                 difference(found, softmax_of(expected.scores, rows)),
                                 difference(softmax_of(found, rows), expected.scores)});
  if (apart <= tolerance) {
    return fmt::format(
        "verified {}: scores of {} made-up images differ by at most {:.1e} of the "
        "largest",
        where, rows, apart);
  }
  throw error("'{}' does not give the scores of the net {}: they differ by {:.1e} of the largest",
              file.string(), where, apart);
}

// A folder of its own, removed with its files at the end.
class WorkFolder {
 public:
  WorkFolder() {
    std::string name = (fs::temp_directory_path() / "tandem-verify-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw error("no folder can be made as '{}'", name);
    path_ = name;
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

// Runs the program with its standard error in a file; false if it cannot run, or fails.
bool succeeds(std::vector<std::string> arguments, const std::string& errors) {
  std::vector<char*> pointers;
  for (std::string& one : arguments) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  const int failure =
      posix_spawnp(&process, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  return failure == 0 && waitpid(process, &status, 0) == process && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

// Python's last line says what was wrong.
std::string last_line(const std::string& file) {
  if (!path_status(file).is_file()) return "it cannot be run";
  std::vector<std::string> lines = split(read_text_file(file), '\n');
  std::erase(lines, "");
  return lines.empty() ? "it cannot be run" : lines.back();
}

std::vector<float> floats_in(const std::string& file) {
  const std::string bytes = read_text_file(file);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy_n(bytes.data(), values.size() * sizeof(float), reinterpret_cast<char*>(values.data()));
  return values;
}

}  // namespace

std::vector<float> seeded_rows(const Shape& input) {
  std::vector<float> rows(size_t(element_count(input)));
  Random random(1, stream_of("verify"));
  for (float& value : rows) value = static_cast<float>(2 * random.uniform() - 1);
  return rows;
}

std::vector<float> scores_of(Registry& registry, const NetDefinition& net,
                             const std::vector<float>& weights, const Shape& input,
                             const std::vector<float>& rows) {
  SessionOptions options;
  options.data = {1, input.c, input.h, input.w};
  options.training = false;
  Session session(registry, net, options);
  session.set_weights(weights);
  NetRunner runner(session);
  std::vector<float> scores(size_t(input.n * runner.classes()));
  runner.run(rows.data(), input.n, scores.data());
  return scores;
}

std::string compare_as_net(Registry& registry, const fs::path& file, const ScoredRows& expected) {
  std::vector<float> scores;
  try {
    const OnnxImport onnx = import_onnx(file, std::array<double, 3>{1, 1, 1});
    NetOptions plain;
    plain.data = onnx.net.input_shape();
    plain.device_kind = "";
    const Net net = build_net(onnx.net, registry, plain);
    std::vector<float> weights = initial_weights(net, 1);
    (void)copy_arrays(onnx.arrays, file, net, &weights);
    scores = scores_of(registry, onnx.net, weights, expected.input, expected.rows);
  } catch (const Error& reason) {
    return fmt::format("not verified by reading it again: {}", reason.what());
  }
  return judged(scores, expected, file, "by reading it again");
}

std::string compare_with(const std::string& with, const fs::path& file,
                         const ScoredRows& expected) {
  if (with != "onnxruntime") throw error("--verify {}: there is onnxruntime", with);
  const char* named = std::getenv("TANDEM_PYTHON");
  const std::string python = named == nullptr || *named == 0 ? "python3" : named;
  const WorkFolder work;
  const std::string rows = work.file("rows"), scores = work.file("scores");
  write_text_file(rows, {reinterpret_cast<const char*>(expected.rows.data()),
                         expected.rows.size() * sizeof(float)});
  const Shape& in = expected.input;
  std::vector<std::string> command{python, "-c", script, file.string(), rows, scores};
  for (const int64_t extent : {in.n, in.c, in.h, in.w})
    command.push_back(fmt::format("{}", extent));
  if (!succeeds(command, work.file("errors"))) {
    throw error("--verify onnxruntime: {} (TANDEM_PYTHON names the Python that has it): {}", python,
                last_line(work.file("errors")));
  }
  return judged(floats_in(scores), expected, file, "in ONNX Runtime");
}

}  // namespace tandem
