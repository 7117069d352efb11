// A net of 5,000 layers on the command line, of which the memory is measured.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;

struct Use {
  int code = -1;
  int64_t bytes = 0;  // the most memory
};

// In a process of its own, whose children are those of this command alone.
Use use_of(const Desk& desk, const std::string& arguments) {
  int ends[2] = {};
  if (::pipe(ends) != 0) return {};
  const pid_t process = ::fork();
  if (process == 0) {
    Use use;
    use.code = desk.tandem(arguments).code;
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    use.bytes = int64_t{usage.ru_maxrss} * 1024;
    ::_exit(::write(ends[1], &use, sizeof(use)) == sizeof(use) ? 0 : 1);
  }
  ::close(ends[1]);
  Use use;
  const bool is_read = ::read(ends[0], &use, sizeof(use)) == sizeof(use);
  ::close(ends[0]);
  ::waitpid(process, nullptr, 0);
  return is_read ? use : Use{};
}

// 2,500 convolutions of 8 channels, each with a ReLU, and a classifier.
std::string deep_net() {
  std::string text = "name: 'deep' layer { name: 'data' type: 'Data' top: 'data' top: 'label' }\n";
  std::string below = "data";
  for (int i = 0; i < 2500; ++i) {
    text += fmt::format(
        "layer {{ name: 'c{0}' type: 'Convolution' bottom: '{1}' top: 'c{0}'"
        " convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 }} }}\n"
        "layer {{ name: 'r{0}' type: 'ReLU' bottom: 'c{0}' top: 'c{0}' }}\n",
        i, below);
    below = fmt::format("c{}", i);
  }
  return text +
         fmt::format(
             "layer {{ name: 'fc' type: 'InnerProduct' bottom: '{}' top: 'fc'"
             " inner_product_param {{ num_output: 2 }} }}\n"
             "layer {{ name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc' bottom: 'label' }}\n",
             below);
}

TEST(DeepNet, OfFiveThousandLayersIsPlannedWithin300Megabytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory counts, too";
#endif
  const Desk desk;
  desk.write("deep.prototxt", deep_net());
  for (const char* strategy : {"two_phase", "hybrid", "asymmetric"}) {
    const Use use = use_of(desk, fmt::format("plan --net deep.prototxt --image-size 8 --devices "
                                             "sim:2 --no-tasks --strategy {}",
                                             strategy));
    EXPECT_EQ(use.code, 0) << strategy;
    EXPECT_GT(use.bytes, 50'000'000) << strategy;
    EXPECT_LT(use.bytes, 300'000'000) << strategy;
  }
}

}  // namespace
}  // namespace tandem
