// What layers on the cpu share to run oneDNN primitives: descriptors of the ABI's tensors, offsets
// in a pass's scratch memory, and primitives whose arguments are bound once, so that a run only
// changes their addresses. The caller provides the scratchpads, so that passes do not allocate
// large memory.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/cpu/layout.h"
#include "plugins/cpu/onednn_api.h"
#include "plugins/sdk.h"

namespace tandem::cpu {

// Some virtual machines announce AMX but no palette for its tiles. Instructions that multiply tiles
// are illegal there, but oneDNN 2.6 uses them.
inline bool announces_amx_without_tiles() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned amx_tile = 1U << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & amx_tile) == 0) return false;
  return __get_cpuid_count(0x1d, 0, &a, &b, &c, &d) == 0 || a == 0;
#else
  return false;
#endif
}

// Set when a module is loaded: oneDNN accepts no cap after it has been asked for its instruction
// set.
[[maybe_unused]] inline const bool amx_is_left_out = [] {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr || std::getenv("DNNL_MAX_CPU_ISA") != nullptr ||
      !announces_amx_without_tiles()) {
    return false;
  }
  return dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16) == dnnl::status::success;
}();

// Whether oneDNN may use these instructions: the CPU has them, and ONEDNN_MAX_CPU_ISA in the
// environment does not exclude them.
inline bool may_use(dnnl::cpu_isa wanted) {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
}

// Whether oneDNN has fast kernels for this CPU's architecture. For others it has reference code,
// which takes many times as long, or with Arm's library kernels of the forward pass alone.
// TANDEM_CPU_KERNELS=own in the environment asks for what such a CPU computes with.
inline bool has_library_kernels() {
#if defined(__x86_64__)
  static const bool has = [] {
    const char* kernels = std::getenv("TANDEM_CPU_KERNELS");
    return kernels == nullptr || std::string_view(kernels) != "own";
  }();
  return has;
#else
  return false;
#endif
}

// Whether layers compute in the dtype by Tandem's own kernels alone: those of every shape are for
// float32.
inline bool has_own_kernels_only(int32_t dtype) {
  return dtype == TANDEM_FLOAT32 && !has_library_kernels();
}

// The blocked layout of the widest direct kernels for the dtype. For bfloat16 it is that of AVX-512
// on any machine: a plan made on a machine that cannot compute bfloat16 is for one that can.
inline int32_t blocked_layout(int32_t dtype) {
  const bool wide = dtype == TANDEM_BFLOAT16 || may_use(dnnl::cpu_isa::avx512_core);
  return wide ? TANDEM_NCHW16C : TANDEM_NCHW8C;
}

inline dnnl::memory::format_tag tag_of(int32_t layout) {
  switch (layout) {
    case TANDEM_NHWC:
      return dnnl::memory::format_tag::nhwc;
    case TANDEM_NCHW8C:
      return dnnl::memory::format_tag::nChw8c;
    case TANDEM_NCHW16C:
      return dnnl::memory::format_tag::nChw16c;
    default:
      return dnnl::memory::format_tag::nchw;
  }
}

// Throws Refusal for a dtype other than float32 and bfloat16.
inline dnnl::memory::data_type type_of(int32_t dtype) {
  if (dtype == TANDEM_FLOAT32) return dnnl::memory::data_type::f32;
  if (dtype == TANDEM_BFLOAT16) return dnnl::memory::data_type::bf16;
  throw sdk::unsupported("computes in float32 and bfloat16, not in dtype ", dtype);
}

inline dnnl::memory::desc descriptor(const tandem_tensor& tensor) {
  const tandem_shape& s = tensor.shape;
  return {{s.n, s.c, s.h, s.w}, type_of(tensor.dtype), tag_of(tensor.layout)};
}

inline dnnl::memory::desc vector_descriptor(int64_t size) {
  return {{size}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a};
}

// Whether Tandem computes in bfloat16 on this CPU. Newer oneDNN has kernels for AVX2 with
// AVX-NE-CONVERT too, in other layouts than those that plans use.
inline bool has_bfloat16() {
  return may_use(dnnl::cpu_isa::avx512_core);
}

// Whether the CPU multiplies tiles of bfloat16 (AMX), many more in the same time. oneDNN's
// convolutions do so in NHWC only.
inline bool multiplies_tiles(int32_t dtype) {
  return dtype == TANDEM_BFLOAT16 && may_use(dnnl::cpu_isa::avx512_core_amx);
}

// Throws Refusal if oneDNN cannot compute in the dtype: bfloat16 needs AVX-512.
inline void require_computable(int32_t dtype) {
  if (dtype != TANDEM_BFLOAT16 || has_bfloat16()) return;
  throw sdk::unsupported("this CPU does not multiply bfloat16, which needs AVX-512 (or ",
                         "ONEDNN_MAX_CPU_ISA excludes it): use --precision float32");
}

// Descriptors and primitives refer to their engine. It is a kernel's first member, so that it is
// destroyed last.
inline dnnl::engine cpu_engine() {
  return {dnnl::engine::kind::cpu, 0};
}

// Reserves 64-byte aligned ranges of the scratch memory of one pass; they are byte offsets.
class ScratchPlan {
 public:
  int64_t reserve(int64_t bytes) {
    const int64_t offset = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// A primitive with its arguments, made once and run many times on the thread that made it.
class Operation {
 public:
  using Addresses = std::initializer_list<std::pair<int, const void*>>;

  Operation() = default;
  // `arguments` are the DNNL_ARG_ numbers of the addresses that run() gets, without the scratchpad,
  // whose memory is reserved in `plan`.
  Operation(const dnnl::primitive_desc_base& descriptor, const dnnl::primitive& primitive,
            std::initializer_list<int> arguments, ScratchPlan& plan)
      : primitive_(primitive), stream_(descriptor.get_engine()), name_(descriptor.impl_info_str()) {
    for (const int argument : arguments) bind(descriptor, argument);
    const auto scratchpad = static_cast<int64_t>(descriptor.scratchpad_desc().get_size());
    if (scratchpad > 0) {
      bind(descriptor, DNNL_ARG_SCRATCHPAD);
      scratchpad_ = plan.reserve(scratchpad);
    }
  }

  explicit operator bool() const { return !arguments_.empty(); }
  // The implementation that oneDNN chose, such as "jit:avx2".
  [[nodiscard]] const std::string& name() const { return name_; }

  // `scratch` is the scratch memory of the pass. Throws dnnl::error.
  void run(std::byte* scratch, Addresses addresses) {
    for (const auto& [argument, address] : addresses) set(argument, address);
    if (scratchpad_ >= 0) set(DNNL_ARG_SCRATCHPAD, scratch + scratchpad_);
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()),
                               arguments_.data()),
        "oneDNN could not run a primitive");
  }

 private:
  void bind(const dnnl::primitive_desc_base& descriptor, int argument) {
    memories_.emplace_back(descriptor.query_md(dnnl::query::exec_arg_md, argument),
                           descriptor.get_engine(), static_cast<void*>(DNNL_MEMORY_NONE));
    arguments_.push_back({argument, memories_.back().get()});
  }
  void set(int argument, const void* address) {
    const auto found = std::find_if(arguments_.begin(), arguments_.end(),
                                    [&](const dnnl_exec_arg_t& a) { return a.arg == argument; });
    if (found == arguments_.end()) return;
    memories_[static_cast<size_t>(found - arguments_.begin())].set_data_handle(
        const_cast<void*>(address));
  }

  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::string name_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  int64_t scratchpad_ = -1;
};

// Copies memory from one format to another; with `add`, adds it to the target.
inline Operation reorder_operation(const dnnl::engine& engine, const dnnl::memory::desc& from,
                                   const dnnl::memory::desc& to, bool add, ScratchPlan& plan) {
  dnnl::primitive_attr attributes = user_scratchpad();
  if (add) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  const dnnl::reorder::primitive_desc descriptor(engine, from, engine, to, attributes);
  return {descriptor, dnnl::reorder(descriptor), {DNNL_ARG_FROM, DNNL_ARG_TO}, plan};
}

}  // namespace tandem::cpu
