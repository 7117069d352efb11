#include "plugins/cpu/kernel_library.h"

#include "plugins/cpu/onednn.h"

namespace tandem::cpu {

namespace {

#if defined(__aarch64__)
// What a convolution of oneDNN is computed by, which depends on how oneDNN was built.
const char* instructions() {
  const auto any = [](const dnnl::memory::dims& extents) {
    return dnnl::memory::desc(extents, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
  };
  const auto descriptor = describe<dnnl::convolution_forward>(
      Making{cpu_engine()}, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      any({1, 32, 8, 8}), any({32, 32, 3, 3}), any({1, 32, 8, 8}), dnnl::memory::dims{1, 1},
      dnnl::memory::dims{1, 1}, dnnl::memory::dims{1, 1});
  const std::string name = descriptor.impl_info_str();
  const bool is_compiled = name.find("sve") != std::string::npos;
  const bool is_library = name.find("acl") != std::string::npos;
  return is_library ? "Arm Compute Library" : is_compiled ? "SVE" : "reference code";
}
#else
// The instructions that oneDNN may use.
const char* instructions() {
#if defined(__x86_64__)
  if (may_use(dnnl::cpu_isa::avx512_core_amx)) return "AMX";
  if (may_use(dnnl::cpu_isa::avx512_core)) return "AVX-512";
  if (may_use(dnnl::cpu_isa::avx2)) return "AVX2";
  if (may_use(dnnl::cpu_isa::avx)) return "AVX";
  if (may_use(dnnl::cpu_isa::sse41)) return "SSE4.1";
#endif
  return "portable code";
}
#endif

// Intel's vectors multiply half as many bfloat16 as float32 in the same time, AMD's twice as many
// (docs/reports/benchmark.md).
bool has_slow_vectors() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") != 0 && !multiplies_tiles(TANDEM_BFLOAT16);
#else
  return false;
#endif
}

const char* bfloat16_text() {
  if (!has_bfloat16()) return "no bfloat16";
  if (!may_use(dnnl::cpu_isa::avx512_core_bf16)) {
    return "no instructions for bfloat16, so float32 is faster";
  }
  return has_slow_vectors() ? "bfloat16 without AMX, so float32 is faster" : "bfloat16";
}

const char* own_kernels_text() {
  if (has_library_kernels()) return "";
#if defined(__aarch64__)
  return ", own kernels for float32 with NEON";
#else
  return ", own kernels for float32";
#endif
}

}  // namespace

const std::string& kernel_library() {
  static const std::string text = [] {
    const dnnl_version_t* version = dnnl_version();
    return sdk::text("oneDNN ", version->major, ".", version->minor, ".", version->patch, " with ",
                     instructions(), own_kernels_text(), "; ", bfloat16_text());
  }();
  return text;
}

}  // namespace tandem::cpu
