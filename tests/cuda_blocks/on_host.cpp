#include "tests/cuda_blocks/on_host.h"

#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace tandem::on_host {
namespace {

thread_local std::barrier<>* block = nullptr;

const std::string& left_out() {
  static const std::string place = [] {
    const char* given = std::getenv("TANDEM_WITHOUT_BARRIER");
    return std::string(given == nullptr ? "" : given);
  }();
  return place;
}

}  // namespace

void run_grid(unsigned blocks, unsigned threads, const std::function<void()>& thread) {
  std::barrier<> together(threads);
  std::vector<std::thread> all;
  for (unsigned rank = 0; rank < threads; ++rank) {
    all.emplace_back([&, rank] {
      block = &together;
      threadIdx.x = rank;
      blockDim.x = threads;
      gridDim.x = blocks;
      for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        thread();
        together.arrive_and_wait();  // the next block uses the same shared memory
      }
    });
  }
  for (std::thread& each : all) each.join();
}

void wait_for_block(const char* file, int line) {
  if (!left_out().empty()) {
    const char* slash = std::strrchr(file, '/');
    const std::string place =
        std::string(slash == nullptr ? file : slash + 1) + ":" + std::to_string(line);
    if (place == left_out()) return;
  }
  block->arrive_and_wait();
}

uint64_t nanoseconds() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace tandem::on_host
