// Memory for the tensors of a kernel that is checked: filled with NaN and placed between canaries
// and pages that cannot be accessed. A read of unwritten memory becomes a NaN. A write out of
// bounds is found by damage(), or is a segmentation fault if it is far away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem {

// 64-byte aligned. Throws Error if there is no memory.
class GuardedMemory {
 public:
  // What it is filled with: 0xFF is a NaN in every dtype, `finite` a large number.
  static constexpr unsigned char nan = 0xFF, finite = 0x7A;
  // The canaries differ with it, too.
  explicit GuardedMemory(int64_t bytes, unsigned char fill = nan);
  // Holds a copy of `bytes` bytes.
  GuardedMemory(const void* values, int64_t bytes, unsigned char fill = nan);
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();

  [[nodiscard]] float* data() const { return reinterpret_cast<float*>(data_); }
  [[nodiscard]] int64_t bytes() const { return static_cast<int64_t>(bytes_); }
  // "8 bytes were written in front of it" and the like; "" if the canaries are whole.
  [[nodiscard]] std::string damage() const { return damage_of(data_); }
  static std::string damage_of(const void* data);

  // Bytes of the canaries, at least, on each side of the data.
  static constexpr size_t guard = 64;
  // The size of the GuardedMemory whose data() is `data`.
  static int64_t bytes_of(const void* data);

 private:
  size_t bytes_, inside_ = 0;
  unsigned char* pages_ = nullptr;
  unsigned char* data_ = nullptr;
};

}  // namespace tandem
