#include "core/schedule/kernels/guarded_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <span>

#include "core/base/error.h"
#include "core/base/guarded_memory.h"
#include "core/plugin/host.h"

namespace tandem {
namespace {

using GuardClock = std::chrono::steady_clock;

double seconds_from(GuardClock::time_point begin) {
  return std::chrono::duration<double>(GuardClock::now() - begin).count();
}

bool is_copied_in(GuardedAccess access) {
  return access == GuardedAccess::read || access == GuardedAccess::update;
}
bool is_copied_out(GuardedAccess access) {
  return access == GuardedAccess::update || access == GuardedAccess::write ||
         access == GuardedAccess::fill;
}

// Of two uses of one memory in one pass.
GuardedAccess together(GuardedAccess a, GuardedAccess b) {
  if (a == b) return a;
  return GuardedAccess::update;
}

size_t element_bytes(const GuardedPart& part) {
  return part.dtype == TANDEM_BFLOAT16 || part.dtype == TANDEM_FLOAT16 ? 2 : 4;
}

// The first element that holds what the memory was filled with; -1: none.
int64_t unwritten_element(const GuardedPart& part, const unsigned char* bytes) {
  const size_t each = element_bytes(part), count = size_t(part.bytes) / each;
  constexpr unsigned char fill[4] = {GuardedMemory::nan, GuardedMemory::nan, GuardedMemory::nan,
                                     GuardedMemory::nan};
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(bytes + i * each, fill, each) == 0) return static_cast<int64_t>(i);
  }
  return -1;
}

// The first element that is no finite number, of float32; -1: none.
int64_t element_not_finite(const GuardedPart& part, const void* data, bool only_nan) {
  if (part.dtype != TANDEM_FLOAT32) return -1;
  const std::span<const float> values(static_cast<const float*>(data),
                                      size_t(part.bytes) / sizeof(float));
  const auto found = std::find_if(values.begin(), values.end(), [only_nan](float value) {
    return only_nan ? std::isnan(value) : !std::isfinite(value);
  });
  return found == values.end() ? -1 : found - values.begin();
}

std::string broken_promise(const GuardedPart& part, const GuardedMemory& memory) {
  const auto* now = reinterpret_cast<const unsigned char*>(memory.data());
  if (std::string damage = memory.damage(); !damage.empty()) {
    return fmt::format("{}: {}", part.name, damage);
  }
  if (part.access == GuardedAccess::read &&
      std::memcmp(now, part.address, size_t(part.bytes)) != 0) {
    return fmt::format("{} was written, but this pass may only read it", part.name);
  }
  if (part.access == GuardedAccess::hidden &&
      std::any_of(now, now + part.bytes,
                  [](unsigned char byte) { return byte != GuardedMemory::nan; })) {
    return fmt::format("{} was written, but this pass may not use it", part.name);
  }
  if (part.access != GuardedAccess::write) return "";
  const int64_t unwritten = unwritten_element(part, now);
  if (unwritten < 0) return "";
  return fmt::format(
      "{}: element {} was not written, or was made from memory that this pass has not written or "
      "must not read",
      part.name, unwritten);
}

using Parts = std::vector<GuardedPart>;
using Memories = std::vector<GuardedMemory>;  // of each part

Memories guarded_memories(const Parts& parts) {
  Memories memories;
  for (const GuardedPart& part : parts) {
    if (is_copied_in(part.access)) {
      memories.emplace_back(part.address, part.bytes);
    } else {
      memories.emplace_back(part.bytes);
    }
  }
  return memories;
}

// The pass with the addresses of the guarded memories.
void lead_to_copies(const Parts& parts, const Memories& memories, const LayerPointers& pointers,
                    LayerPointers& copies) {
  using Array = std::vector<void*> LayerPointers::*;
  const auto copy_of = [&](const void* address, Array array = nullptr) -> void* {
    for (const Array hidden_in : {array, Array{nullptr}}) {
      for (size_t i = 0; i < parts.size(); ++i) {
        const bool is_it = parts[i].address == address && parts[i].hidden_in == hidden_in;
        if (is_it) return memories[i].data();
      }
    }
    return const_cast<void*>(address);
  };
  for (const Array array :
       {&LayerPointers::inputs, &LayerPointers::outputs, &LayerPointers::weights,
        &LayerPointers::input_gradients, &LayerPointers::weight_gradients}) {
    for (void* address : pointers.*array) (copies.*array).push_back(copy_of(address, array));
  }
  for (const void* address : pointers.output_gradients) {
    copies.output_gradients.push_back(copy_of(address));
  }
  copies.pass = pointers.pass;
  copies.connect();
  copies.pass.saved = copy_of(pointers.pass.saved);
  copies.pass.scratch = copy_of(pointers.pass.scratch);
  copies.pass.addend = copy_of(pointers.pass.addend);
  copies.pass.statistics = static_cast<float*>(copy_of(pointers.pass.statistics));
}

// A NaN that was made of finite numbers; "" if there is none.
std::string new_nan(const Parts& parts, const Memories& memories) {
  for (const GuardedPart& part : parts) {
    const bool is_input = is_copied_in(part.access);
    if (is_input && element_not_finite(part, part.address, false) >= 0) return "";
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!is_copied_out(parts[i].access) || parts[i].access == GuardedAccess::fill) continue;
    const int64_t at = element_not_finite(parts[i], memories[i].data(), true);
    if (at < 0) continue;
    return fmt::format(
        "{}: element {} is NaN, and all that the pass may read is finite: it was made from memory "
        "that this pass has not written or must not read, or by its arithmetic",
        parts[i].name, at);
  }
  return "";
}

// What a pass broke; "" if nothing.
std::string broken_promise(const Parts& parts, const Memories& memories) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (std::string broken = broken_promise(parts[i], memories[i]); !broken.empty()) return broken;
  }
  return new_nan(parts, memories);
}

void copy_out(const Parts& parts, const Memories& memories) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!is_copied_out(parts[i].access)) continue;
    std::memcpy(parts[i].address, memories[i].data(), size_t(parts[i].bytes));
  }
}

}  // namespace

void PluginGuards::add(double guard_seconds, double kernel_seconds) {
  passes_ += 1;
  guard_nanoseconds_ += std::llround(1e9 * guard_seconds);
  kernel_nanoseconds_ += std::llround(1e9 * kernel_seconds);
}

std::string PluginGuards::text() const {
  if (passes_ == 0) {
    return "--check-plugins: no layer of the net has a kernel of a third party, so none was "
           "checked";
  }
  return fmt::format(
      "--check-plugins: {} passes of third parties' kernels ran between guards, which took {:.3g} "
      "ms beside {:.3g} ms of their own",
      passes_.load(), 1e-6 * static_cast<double>(guard_nanoseconds_),
      1e-6 * static_cast<double>(kernel_nanoseconds_));
}

void GuardedPass::add(GuardedPart part) {
  if (part.address == nullptr || part.bytes <= 0) return;
  const auto same = std::find_if(parts_.begin(), parts_.end(), [&](const GuardedPart& other) {
    return other.address == part.address && other.hidden_in == part.hidden_in;
  });
  if (same == parts_.end()) {
    parts_.push_back(std::move(part));
    return;
  }
  same->access = together(same->access, part.access);
  same->bytes = std::max(same->bytes, part.bytes);
}

bool GuardedPass::is_possible() const {
  std::vector<std::pair<const std::byte*, const std::byte*>> ranges;
  for (const GuardedPart& part : parts_) {
    if (part.access == GuardedAccess::hidden) continue;
    const auto* begin = static_cast<const std::byte*>(part.address);
    ranges.emplace_back(begin, begin + part.bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return false;
  }
  return true;
}

tandem_status GuardedPass::run(const LayerPointers& pointers,
                               const std::function<tandem_status(const tandem_pass*)>& pass,
                               PluginGuards& guards) const try {
  const GuardClock::time_point begin = GuardClock::now();
  const Memories memories = guarded_memories(parts_);
  LayerPointers copies;
  lead_to_copies(parts_, memories, pointers, copies);

  const GuardClock::time_point kernel_begin = GuardClock::now();
  tandem_status status = pass(&copies.pass);
  const double kernel_seconds = seconds_from(kernel_begin);

  if (status == TANDEM_OK) {
    const std::string broken = broken_promise(parts_, memories);
    if (broken.empty()) {
      copy_out(parts_, memories);
    } else {
      host_table().explain(broken.c_str());
      status = TANDEM_FAILED;
    }
  }
  guards.add(seconds_from(begin) - kernel_seconds, kernel_seconds);
  return status;
} catch (const Error& failure) {  // no memory
  host_table().explain(failure.what());
  return TANDEM_FAILED;
}

}  // namespace tandem
