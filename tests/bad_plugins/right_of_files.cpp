// A layer without a mistake that gives its memory to system calls before it touches it: they fail
// where a check has made it inaccessible.
#include <unistd.h>
#include <cstdio>
#include <stdexcept>

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

struct WritesFile : LayerType {
  const char* name() const override { return "right.WritesFile"; }
  const char* help() const override { return "twice the input, which it writes to a file"; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
};

class WritesFileCpu {
 public:
  WritesFileCpu(const Binding& binding, const Call&) : count_(count(binding.input(0).shape)) {}
  void forward(const Call&, const Pass& pass) const {
    write_twice(pass.input(0).data(), pass.output(0).data());
  }
  void backward_data(const Call&, const Pass& pass) const {
    write_twice(pass.output_gradient(0).data(), pass.input_gradient(0).data());
  }

 private:
  void write_twice(const float* from, float* to) const {
    std::FILE* const file = std::tmpfile();
    if (file == nullptr) throw std::runtime_error("no temporary file");
    const ssize_t bytes = 4 * count_;
    const bool is_written = ::write(fileno(file), from, static_cast<size_t>(bytes)) == bytes;
    std::fclose(file);
    if (!is_written) throw std::runtime_error("the temporary file cannot be written");
    for (int64_t i = 0; i < count_; ++i) to[i] = 2 * from[i];
  }
  int64_t count_;
};

}  // namespace

void add_layers_of_files(Plugin& plugin) {
  plugin.layer<WritesFile>().kernel<WritesFile, WritesFileCpu>("cpu");
}
