// Memory for the tensors of a kernel: filled with NaN and placed between two guards, so that a read
// of unwritten memory and a write out of bounds are detected.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>

namespace tandem::test {

// 64-byte aligned memory between two guards, which its destructor checks.
class GuardedMemory {
 public:
  explicit GuardedMemory(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)),
        memory_(new (std::align_val_t{64}) unsigned char[bytes_ + 2 * guard]) {
    std::memset(memory_.get(), mark, bytes_ + 2 * guard);
    std::memset(memory_.get() + guard, 0xFF, bytes_);  // NaN in every float
    sizes()[data()] = bytes;
  }
  // Holds a copy of `bytes` bytes.
  GuardedMemory(const void* values, int64_t bytes) : GuardedMemory(bytes) {
    std::memcpy(data(), values, bytes_);
  }
  GuardedMemory(GuardedMemory&&) = default;
  ~GuardedMemory() {
    if (memory_ == nullptr) return;
    sizes().erase(data());
    for (size_t i = 0; i < guard; ++i) {
      EXPECT_EQ(memory_[i], mark) << "something wrote in front of a buffer";
      EXPECT_EQ(memory_[guard + bytes_ + i], mark) << "something wrote after a buffer";
    }
  }
  [[nodiscard]] float* data() const { return reinterpret_cast<float*>(memory_.get() + guard); }

  static constexpr size_t guard = 64;
  // The size of the GuardedMemory whose data() is `data`.
  static int64_t bytes_of(const void* data) { return sizes().at(data); }

 private:
  static std::map<const void*, int64_t>& sizes() {
    static std::map<const void*, int64_t> sizes;
    return sizes;
  }
  static constexpr unsigned char mark = 0xA5;
  struct Free {
    void operator()(unsigned char* memory) const {
      ::operator delete[](memory, std::align_val_t{64});
    }
  };
  size_t bytes_;
  std::unique_ptr<unsigned char[], Free> memory_;
};

}  // namespace tandem::test
