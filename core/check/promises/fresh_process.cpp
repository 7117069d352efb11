#include "core/check/promises/fresh_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/base/files/files.h"

namespace tandem::checker {

namespace {

// A message: its fields one after the other, in memory order, since both ends are one program.
class Writer {
 public:
  void number(int64_t value) { raw(&value, sizeof value); }
  void text(const std::string& value) {
    number(int64_t(value.size()));
    raw(value.data(), value.size());
  }
  void tensors(const std::vector<PlainTensor>& tensors) {
    number(int64_t(tensors.size()));
    for (const PlainTensor& tensor : tensors) {
      raw(&tensor.shape, sizeof tensor.shape);
      number(int64_t(tensor.values.size()));
      raw(tensor.values.data(), tensor.values.size() * sizeof(float));
    }
  }
  void raw(const void* data, size_t bytes) {
    const auto* first = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), first, first + bytes);
  }
  // After its own size. False if the other end is gone.
  [[nodiscard]] bool send(int file) const {
    const auto size = int64_t(bytes_.size());
    return write_bytes(file, &size, sizeof size) && write_bytes(file, bytes_.data(), bytes_.size());
  }

 private:
  std::vector<char> bytes_;
};

class Reader {
 public:
  explicit Reader(const std::vector<char>& bytes) : bytes_(bytes) {}
  int64_t number() {
    int64_t value = 0;
    raw(&value, sizeof value);
    return value;
  }
  std::string text() {
    std::string value(size_t(number()), ' ');
    raw(value.data(), value.size());
    return value;
  }
  std::vector<PlainTensor> tensors() {
    std::vector<PlainTensor> result(static_cast<size_t>(number()));
    for (PlainTensor& tensor : result) {
      raw(&tensor.shape, sizeof tensor.shape);
      tensor.values.resize(size_t(number()));
      raw(tensor.values.data(), tensor.values.size() * sizeof(float));
    }
    return result;
  }

  void raw(void* data, size_t bytes) {
    if (bytes > 0) std::memcpy(data, bytes_.data() + at_, bytes);
    at_ += bytes;
  }

 private:
  const std::vector<char>& bytes_;
  size_t at_ = 0;
};

auto use_of(const LayerSetup& setup, const std::vector<NetUse>& uses) {
  return std::find_if(uses.begin(), uses.end(),
                      [&](const NetUse& one) { return one.attributes == setup.attributes; });
}

// Whether what a message has is all of the setup.
bool can_be_sent(const LayerSetup& setup, const std::vector<NetUse>& uses) {
  const LayerSetup plain;
  const auto fields = [](const LayerSetup& s) {
    return std::tuple(s.phase, s.input_layout, s.output_layout, s.input_dtype, s.output_dtype,
                      s.flags, s.layer_index, s.batch_begin, s.batch_size, s.slice_begin,
                      s.slice_end, s.whole_outputs, s.input_begin, s.input_end, s.activation,
                      s.activation_before, s.on_a_cpu, s.algorithm, s.threads, s.fill);
  };
  const bool has_attributes = setup.attributes == nullptr || use_of(setup, uses) != uses.end();
  return has_attributes && fields(setup) == fields(plain) && setup.row_labels.empty() &&
         setup.addend.values.empty() && setup.output_start.values.empty() &&
         std::memcmp(&setup.step, &plain.step, sizeof plain.step) == 0;
}

void write(Writer& to, const LayerSetup& setup, const std::vector<NetUse>& uses) {
  const auto use = use_of(setup, uses);
  to.text(setup.type);
  to.number(setup.attributes == nullptr ? -1 : use - uses.begin());
  to.number(int64_t(setup.parameters.size()));
  for (const auto& [name, value] : setup.parameters) {
    to.text(name);
    to.text(value);
  }
  to.tensors(setup.inputs);
  to.tensors(setup.weights);
  to.number(setup.output_count);
  to.raw(&setup.normaliser, sizeof setup.normaliser);
}

LayerSetup read_setup(Reader& from, const std::vector<NetUse>& uses) {
  LayerSetup setup;
  setup.type = from.text();
  const int64_t use = from.number();
  if (use >= 0) setup.attributes = uses[size_t(use)].attributes;
  for (int64_t i = from.number(); i > 0; --i) {
    std::string name = from.text();
    setup.parameters.emplace_back(std::move(name), from.text());
  }
  setup.inputs = from.tensors();
  setup.weights = from.tensors();
  setup.output_count = uint32_t(from.number());
  from.raw(&setup.normaliser, sizeof setup.normaliser);
  return setup;
}

bool receive(int file, char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::read(file, data, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    bytes -= size_t(got);
  }
  return true;
}

std::optional<std::vector<char>> received(int file) {
  int64_t size = 0;
  if (!receive(file, reinterpret_cast<char*>(&size), sizeof size)) return std::nullopt;
  std::vector<char> bytes(static_cast<size_t>(size));
  if (!receive(file, bytes.data(), bytes.size())) return std::nullopt;
  return bytes;
}

// How the process ended, as of waitpid(); -1 if there is none.
int status_of(pid_t process) {
  int status = -1;
  while (process > 0 && ::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void close_all(const int (&files)[2]) {
  for (const int file : files) {
    if (file >= 0) ::close(file);
  }
}

}  // namespace

FreshProcess::FreshProcess(const Registry& registry, const std::vector<NetUse>& uses, int patience,
                           int closes)
    : registry_(registry),
      uses_(uses),
      patience_(patience),
      has_threads_(entries_of("/proc/self/task").size() > 1) {
  if (has_threads_) return;
  if (::pipe2(questions_, O_CLOEXEC) != 0 || ::pipe2(answers_, O_CLOEXEC) != 0) {
    throw error("no pipe: {}", std::strerror(errno));
  }
  copy_ = ::fork();
  if (copy_ < 0) throw error("no child process: {}", std::strerror(errno));
  if (copy_ > 0) {
    ::close(std::exchange(questions_[0], -1));
    ::close(std::exchange(answers_[1], -1));
    return;
  }
  ::close(closes);
  ::close(questions_[1]);
  serve();
}

FreshProcess::~FreshProcess() {
  close_all(questions_);
  close_all(answers_);
  static_cast<void>(status_of(copy_));
}

std::optional<Results> FreshProcess::results_of(const LayerSetup& setup, const std::string& kind,
                                                const LayerSetup* before) {
  const bool is_whole =
      can_be_sent(setup, uses_) && (before == nullptr || can_be_sent(*before, uses_));
  if (!is_whole || !why_silent(setup.type).empty()) return std::nullopt;
  Writer question;
  question.text(kind);
  question.number(before == nullptr ? 1 : 2);
  if (before != nullptr) write(question, *before, uses_);
  write(question, setup, uses_);
  if (!question.send(questions_[1])) return std::nullopt;
  const std::optional<std::vector<char>> answer = received(answers_[0]);
  if (!answer.has_value() || answer->empty()) {
    silent_type_ = setup.type;
    return std::nullopt;
  }
  Reader reader(*answer);
  const bool is_refused = reader.number() == 0;
  if (is_refused) return std::nullopt;
  Results results;
  results.outputs = reader.tensors();
  results.input_gradients = reader.tensors();
  results.weight_gradients = reader.tensors();
  return results;
}

std::string FreshProcess::why_silent(const std::string& type) const {
  if (has_threads_) return "the module has threads of its own";
  return type == silent_type_ ? "it gave no answer there" : "";
}

// Until nobody asks any more. A copy that ends without an answer has none.
void FreshProcess::serve() const {
  for (;;) {
    const std::optional<std::vector<char>> question = received(questions_[0]);
    if (!question.has_value()) ::_exit(0);
    const pid_t process = ::fork();
    if (process == 0) {
      answer(*question);
      ::_exit(0);
    }
    const int status = status_of(process);
    const bool has_answered = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!has_answered && !Writer().send(answers_[1])) ::_exit(0);
  }
}

void FreshProcess::answer(const std::vector<char>& question) const {
  Reader reader(question);
  ::alarm(unsigned(patience_ / 2 + 1));  // before that of the check is over
  const std::string kind = reader.text();
  const int64_t setups = reader.number();
  Writer answer;
  try {
    BackendDevice device(registry_.backend(kind));
    OpenDevices devices(registry_);
    Results results;
    for (int64_t i = 0; i < setups; ++i) {
      const LayerSetup setup = read_setup(reader, uses_);
      const Subject subject{registry_,
                            devices,
                            device,
                            registry_.layer_type(setup.type),
                            registry_.kernel(setup.type, kind),
                            {}};
      results = checker::results_of(subject, setup);
    }
    answer.number(1);
    answer.tensors(results.outputs);
    answer.tensors(results.input_gradients);
    answer.tensors(results.weight_gradients);
  } catch (const std::exception&) {
    answer.number(0);
  }
  if (!answer.send(answers_[1])) ::_exit(0);
}

}  // namespace tandem::checker
