// What the cuda backend decides without a GPU: its messages, the options that it accepts, how it
// divides its work, how it measures time; and that programs do not need CUDA's libraries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <regex>
#include <string>

#include "plugins/cuda/clock.h"
#include "plugins/cuda/hardware.h"
#include "plugins/cuda/launch.h"
#include "plugins/cuda/machine.h"
#include "plugins/cuda/sources.h"
#include "plugins/cuda/status.h"
#include "plugins/cuda/sum_order.h"
#include "tests/cuda/machines.h"
#include "tests/support/folders.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(NoGpu, IsExplainedByWhatIsMissing) {
  EXPECT_THAT(cuda::no_gpu_reason(cudaErrorInsufficientDriver, 0, 13000),
              AllOf(HasSubstr("no NVIDIA driver was found"), HasSubstr("supports CUDA 13.0")));
  EXPECT_THAT(cuda::no_gpu_reason(cudaErrorInsufficientDriver, 12040, 13020),
              AllOf(HasSubstr("the NVIDIA driver supports CUDA 12.4, this needs 13.0"),
                    HasSubstr("install a newer driver")));
  EXPECT_THAT(cuda::no_gpu_reason(cudaErrorNoDevice, 13000, 13000),
              HasSubstr("there is a driver, but no NVIDIA GPU"));
  EXPECT_THAT(cuda::no_gpu_reason(cudaErrorUnknown, 13000, 13000),
              AllOf(HasSubstr("cannot be counted"), HasSubstr("cudaGetDeviceCount: ")));
}

TEST(NoGpu, IsReportedByCount) {
  const std::string reason = no_gpu();
  if (reason.empty()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(reason, HasSubstr("(cudaGetDeviceCount: "));
}

TEST(Backend, RequestsAHardwareQueueForEveryStream) {
  static_cast<void>(all_modules().backend("cuda"));
  EXPECT_NE(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), nullptr);
}

std::string refusal_of(tandem_machine_options options, int32_t gpus) {
  options.struct_size = sizeof options;
  try {
    static_cast<void>(cuda::require_options(options, gpus));
  } catch (const sdk::Refusal& refusal) {
    return refusal.what();
  }
  return "";
}

TEST(MachineOptionsOfCuda, MayNameAGpuSeveralTimes) {
  const std::array<int32_t, 4> ordinals{1, 0, 1, 1};
  tandem_machine_options options{};
  options.struct_size = sizeof options;
  options.device_count = 4;
  options.ordinals = ordinals.data();
  EXPECT_THAT(cuda::require_options(options, 2), ElementsAre(1, 0, 1, 1));
  options.ordinals = nullptr;
  EXPECT_THAT(cuda::require_options(options, 4), ElementsAre(0, 1, 2, 3));
}

TEST(MachineOptionsOfCuda, WithAMissingGpuAreRefusedWithTheListOfGpus) {
  const std::array<int32_t, 2> ordinals{0, 4};
  tandem_machine_options options{};
  options.struct_size = sizeof options;
  options.device_count = 2;
  options.ordinals = ordinals.data();
  EXPECT_EQ(refusal_of(options, 1),
            "there is no cuda:4: this machine has 1 GPU, cuda:0; a GPU can be several devices, "
            "as in cuda:0,0");
  EXPECT_THAT(refusal_of(options, 3), HasSubstr("this machine has 3 GPUs, cuda:0 to cuda:2"));
}

TEST(MachineOptionsOfCuda, OfOtherBackendsAreRefused) {
  tandem_machine_options options{};
  options.struct_size = sizeof options;
  options.device_count = 2;
  options.paced = 1;
  EXPECT_THAT(refusal_of(options, 2), AllOf(HasSubstr("paced mode"), HasSubstr("cpu:2")));
  options.paced = 0;
  options.link_latency = 1e-5;
  EXPECT_THAT(refusal_of(options, 2), AllOf(HasSubstr("cannot be slowed"), HasSubstr("sim:2")));
  options.link_latency = 0;
  options.delay_seconds = -1;
  EXPECT_THAT(refusal_of(options, 2), HasSubstr("delay -1"));
  options.device_count = 0;
  EXPECT_THAT(refusal_of(options, 2), HasSubstr("there can be 1 to 1024"));
}

TEST(Launch, HasABlockForEveryElementUpToALimit) {
  EXPECT_EQ(cuda::blocks_for(0), 1U);
  EXPECT_EQ(cuda::blocks_for(1), 1U);
  EXPECT_EQ(cuda::blocks_for(256), 1U);
  EXPECT_EQ(cuda::blocks_for(257), 2U);
  EXPECT_EQ(cuda::blocks_for(1025, 4), 2U);
  EXPECT_EQ(cuda::blocks_for(std::numeric_limits<int32_t>::max()), 4096U);
  EXPECT_EQ(cuda::blocks_for(int64_t{1} << 40), 4096U);
}

TEST(Sources, AreTakenInTheirOrder) {
  std::array<float, 40> values{};
  std::vector<const float*> all;
  for (const float& value : values) all.push_back(&value);
  for (const uint32_t count : {0U, 1U, 16U, 17U, 40U}) {
    std::vector<const float*> taken;
    for (uint32_t begin = 0; begin < count; begin += cuda::sources_at_once) {
      const cuda::Sources some = cuda::take_sources(all.data(), begin, count);
      taken.insert(taken.end(), some.arrays, some.arrays + some.count);
    }
    EXPECT_EQ(taken, std::vector<const float*>(all.begin(), all.begin() + count));
  }
}

TEST(SumOfSquares, IsDividedByTheNumberOfValuesOnly) {
  EXPECT_EQ(cuda::sum_blocks(0), 1);
  EXPECT_EQ(cuda::sum_blocks(4096), 1);
  EXPECT_EQ(cuda::sum_blocks(4097), 2);
  EXPECT_EQ(cuda::sum_blocks(int64_t{1} << 40), cuda::max_partial_sums);
}

// The order of the kernels, on the host: a tree over the threads of a block needs a power of two.
TEST(SumOfSquares, AddsEveryValueOnce) {
  static_assert((cuda::sum_threads & (cuda::sum_threads - 1)) == 0);
  const auto tree = [](std::vector<double> sums) {
    for (size_t half = sums.size() / 2; half > 0; half /= 2) {
      for (size_t t = 0; t < half; ++t) sums[t] += sums[t + half];
    }
    return sums[0];
  };
  for (const int64_t count : {int64_t{1}, int64_t{4095}, int64_t{4097}, int64_t{1'100'000}}) {
    const int blocks = cuda::sum_blocks(count);
    std::vector<double> of_blocks(cuda::sum_threads);
    for (int block = 0; block < blocks; ++block) {
      std::vector<double> of_threads(cuda::sum_threads);
      for (int t = 0; t < cuda::sum_threads; ++t) {
        const int64_t first = static_cast<int64_t>(block) * cuda::sum_threads + t;
        for (int64_t i = first; i < count; i += static_cast<int64_t>(blocks) * cuda::sum_threads) {
          of_threads[static_cast<size_t>(t)] += static_cast<double>(i);
        }
      }
      of_blocks[static_cast<size_t>(block)] = tree(of_threads);
    }
    const auto n = static_cast<double>(count);
    EXPECT_EQ(tree(of_blocks), n * (n - 1) / 2);  // whole numbers: exact in any order
  }
}

TEST(Clock, KeepsTheGpusCountUnlessItHasDrifted) {
  EXPECT_EQ(cuda::reconciled(10.00001, 10, 0.00002), 10.00001);
  EXPECT_EQ(cuda::reconciled(10.5, 10, 0.25), 10.25);
  EXPECT_EQ(cuda::reconciled(9, 10, 0.25), 9.75);
}

TEST(Status, NamesTheCallAndCudasMessage) {
  EXPECT_EQ(cuda::text_of(cudaErrorMemoryAllocation, "cudaMalloc", "cuda:1"),
            "cuda:1: cudaMalloc: out of memory (cudaErrorMemoryAllocation)");
  EXPECT_EQ(cuda::status_of(cudaErrorMemoryAllocation), TANDEM_OUT_OF_MEMORY);
  EXPECT_EQ(cuda::status_of(cudaErrorIllegalAddress), TANDEM_FAILED);
}

// The output of the command, then "exit code N".
std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(("(" + command + "; echo exit code $?) 2>&1").c_str(), "r");
  for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) {
    text += static_cast<char>(c);
  }
  if (pipe != nullptr) pclose(pipe);
  return text;
}

std::string tandem_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tandem";
}

TEST(Programs, ReportTheReasonIfNoGpuCanBeUsed) {
  if (no_gpu().empty()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(output_of(tandem_program() + " devices"),
              AllOf(HasSubstr("cuda: NVIDIA GPUs"), HasSubstr("\n  none: "), HasSubstr("cpu:0"),
                    HasSubstr("exit code 0")));
}

TEST(Programs, EndWithTheReasonForAMissingGpu) {
  if (no_gpu().empty()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(
      output_of(tandem_program() + " profile --net lenet --devices cuda:0"),
      AllOf(HasSubstr("cuda:0"), HasSubstr("cudaGetDeviceCount"), HasSubstr("exit code 1")));
}

TEST(Programs, DoNotLinkCudasLibraries) {
  std::vector<std::string> files{tandem_program()};
  const auto root = std::filesystem::path(tandem_program()).parent_path().parent_path();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "lib")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_symlink() && name.starts_with("libtandem.so")) {
      files.push_back(entry.path().string());
    }
  }
  ASSERT_EQ(files.size(), 2U);
  for (const std::string& file : files) {
    const std::string needed = output_of(TANDEM_READELF " -d " + file);
    if (needed.find("exit code 0") == std::string::npos) GTEST_SKIP() << needed;
    EXPECT_THAT(needed, HasSubstr("[libstdc++")) << file;
    for (const char* library : {"[libcuda", "[libcublas", "[libcudnn"}) {
      EXPECT_THAT(needed, Not(HasSubstr(library))) << file;
    }
  }
}

TEST(Programs, LoadGpuModulesOnlyWhenTheyAreNeeded) {
  const Registry registry = Registry::with_defaults();
  EXPECT_THAT(registry.backends(), testing::Contains("cuda"));
  for (const ModuleReport& module : registry.modules()) {
    EXPECT_THAT(module.path.filename().string(), Not(HasSubstr("cuda")));
  }
}

// A kernel whose block needs more registers or shared memory than a multiprocessor has cannot be
// launched. nvcc knows only those block sizes that a kernel declares.
TEST(Kernels, FitWithTheirBlocksIntoTheRegisters) {
  constexpr int registers = 65536, granularity = 8, max_shared_bytes = 48 << 10;
  constexpr int threads_of_a_large_team = 512;  // max_in_team of teams.h
  const std::string tool = "PATH=$PATH:/usr/local/cuda/bin cuobjdump --dump-resource-usage ";
  int kernels = 0;
  if (!std::filesystem::exists(plugin_folder())) {
    GTEST_SKIP() << "the build's folder " << plugin_folder() << " is not on this machine";
  }
  for (const auto& entry : std::filesystem::directory_iterator(plugin_folder())) {
    if (entry.path().filename().string().find("cuda") == std::string::npos) continue;
    const std::string text = output_of(tool + "'" + entry.path().string() + "'");
    if (text.find("exit code 0") == std::string::npos) GTEST_SKIP() << "no cuobjdump: " << text;
    const std::regex kernel(R"(Function (\S+):\s+REG:(\d+) STACK:\d+ SHARED:(\d+))");
    for (auto at = std::sregex_iterator(text.begin(), text.end(), kernel);
         at != std::sregex_iterator(); ++at, ++kernels) {
      const std::string name = (*at)[1];
      const int each = (std::stoi((*at)[2]) + granularity - 1) / granularity * granularity;
      const bool is_large = name.find("run_teams") != std::string::npos;
      const int threads =
          is_large ? threads_of_a_large_team : static_cast<int>(cuda::threads_per_block);
      EXPECT_LE(each * threads, registers) << name;
      EXPECT_LE(std::stoi((*at)[3]), max_shared_bytes) << name;
    }
  }
  EXPECT_GT(kernels, 100);
}

}  // namespace
}  // namespace tandem::test
