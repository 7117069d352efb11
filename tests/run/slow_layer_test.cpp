// A run says which layer takes far longer than its work should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/plugin/registry.h"
#include "include/tandem/plugins.h"
#include "plugins/sdk.h"
#include "tests/support/emulation.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct Idle : sdk::LayerType {
  [[nodiscard]] const char* name() const override { return "test.Idle"; }
  [[nodiscard]] const char* help() const override { return "x, after some milliseconds"; }
};

class IdleCpu {
 public:
  IdleCpu(const sdk::Binding& binding, const sdk::Call&)
      : elements_(sdk::count(binding.input(0).shape)) {}

  static sdk::LayoutOptions layouts(const sdk::Binding& b) {
    return sdk::any_layout(b.input(0).shape.c);
  }
  void forward(const sdk::Call&, const sdk::Pass& pass) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    std::copy_n(static_cast<const float*>(pass.input(0)), elements_,
                static_cast<float*>(pass.output(0)));
  }
  void backward_data(const sdk::Call&, const sdk::Pass& pass) const {
    std::copy_n(static_cast<const float*>(pass.output_gradient(0)), elements_,
                static_cast<float*>(pass.input_gradient(0)));
  }

 private:
  int64_t elements_;
};

const tandem_plugin* entry(const tandem_host* host) {
  return sdk::Plugin(host, "idle", "1.0").layer<Idle>().kernel<Idle, IdleCpu>("cpu").table();
}

struct Messages : Observer {
  std::vector<std::string> lines;
  void on_message(const std::string& line) override { lines.push_back(line); }
};

std::vector<std::string> messages_of(const TrainOptions& options) {
  Messages messages;
  (void)train(options, messages, built_in_strategies());
  return messages.lines;
}

// Other tests of this process have plugins, too.
class SlowLayer : public testing::Test {
 protected:
  SlowLayer() { register_plugin(entry); }
  ~SlowLayer() override { program_plugins() = before_; }

  [[nodiscard]] TrainOptions idle_run(int64_t steps) const {
    TrainOptions options = synthetic_run(folder_, steps);
    const std::string at = "layer {\n  name: \"score";  // renamed for the classes
    const size_t place = options.net_text.find(at);
    EXPECT_NE(place, std::string::npos) << options.net_text;
    options.net_text.insert(
        place, "layer { name: \"idle\" type: \"test.Idle\" bottom: \"fc3\" top: \"fc3_idle\" }\n");
    return options;
  }

  TempFolder folder_;

 private:
  std::decay_t<decltype(program_plugins())> before_ = std::exchange(program_plugins(), {});
};

TEST_F(SlowLayer, IsNamedByTheRunWithThePassThatIsSlow) {
  TANDEM_SKIP_IF_EMULATED("a layer that sleeps is quick beside emulated arithmetic");
  for (const int64_t steps : {4, 10}) {
    EXPECT_THAT(messages_of(idle_run(steps)),
                Contains(HasSubstr("advice: layer 'idle' (test.Idle) is slow: its forward pass")))
        << steps;
  }
}

// One step that something else has disturbed is no slow layer.
TEST_F(SlowLayer, IsNotNamedAfterFewerThanThreeStepsThatDoNotWarmUp) {
  for (const int64_t steps : {1, 2, 3}) {
    EXPECT_THAT(messages_of(idle_run(steps)), Not(Contains(HasSubstr("is slow")))) << steps;
  }
}

// A sanitizer slows down our own kernels many times, and oneDNN's not at all.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(SlowLayer, IsNotNamedWhereThereIsNone) {
  EXPECT_THAT(messages_of(synthetic_run(folder_, 10)), Not(Contains(HasSubstr("is slow"))));
}
#endif

}  // namespace
}  // namespace tandem::test
