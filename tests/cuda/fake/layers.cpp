// Kernels of every layer for the stand-in of a GPU: those of the cpu, each pass run by the stream
// as a function of the host. Empty copies of it have the names of the real modules (see
// CMakeLists.txt). All of them can fuse a ReLU, like the real ones. With TANDEM_FAKE_ALLOCATES set,
// none of them can be captured; with TANDEM_FAKE_FORGETS, a captured pass does nothing.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plugins/cpu/bfloat16.h"
#include "plugins/cuda/dnn_algorithms.h"
#include "plugins/cuda/libraries.h"
#include "plugins/sdk.h"

namespace {

using tandem::sdk::guarded;
using Body = std::function<void()>;

constexpr int max_kernels = 64;
std::vector<const tandem_kernel*> of_cpu;

struct Handle {
  const tandem_kernel* kernel;
  void* handle;
  std::string algorithm{};  // of a convolution
  bool fuses_relu = false;  // applied after the cpu kernel, which cannot fuse it
  tandem_tensor output{};
};

template <class T>
void apply_relu(T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (tandem::cpu::load(values[i]) < 0) values[i] = T{};
  }
}
void apply_relu(const Handle& self, const tandem_pass& pass) {
  const int64_t count = tandem::sdk::count(self.output.shape);
  if (self.output.dtype == TANDEM_FLOAT32) {
    apply_relu(static_cast<float*>(pass.outputs[0]), count);
  } else {
    apply_relu(static_cast<tandem::cpu::bfloat16*>(pass.outputs[0]), count);
  }
}

// Whether more is allocated on the current GPU than the backend's own memory: a workspace for
// cuBLAS, and tables of its streams.
bool holds_a_net() {
  constexpr size_t workspace = size_t{32} << 20, tables = size_t{64} << 10;
  size_t available = 0, total = 0;
  return cudaMemGetInfo(&available, &total) == cudaSuccess &&
         total - available > workspace + tables;
}

// Simulates measuring, with another result each time, and with all of a GPU's memory needed for it.
// A given algorithm is used.
std::string chosen_algorithm(const tandem_binding& binding) {
  using namespace tandem::cuda;
  static int measurements = 0;
  constexpr int known = 100;
  if (binding.algorithm != nullptr) {
    const int64_t engine = read_algorithms(binding.algorithm)[0]->engine;
    if (engine < known) return binding.algorithm;
    throw tandem::sdk::unsupported("cuDNN has no forward engine ", engine);
  }
  if ((binding.flags & TANDEM_MAY_MEASURE) == 0) return "";
  return text_of({ConvolutionAlgorithm{measurements++ % known}}, true, holds_a_net());
}

tandem_call on_cpu(const tandem_call& call) {
  return {sizeof(tandem_call), call.device, 1, nullptr, nullptr, nullptr};
}

tandem_status issue(const tandem_call& call, Body body) {
  const auto once = [](void* user) {
    const std::unique_ptr<Body> owned(static_cast<Body*>(user));
    (*owned)();
  };
  const auto again = [](void* user) { (*static_cast<Body*>(user))(); };
  // A captured function runs as often as the graph is launched.
  static std::deque<Body> captured;
  auto* const stream = static_cast<cudaStream_t>(call.native_stream);
  auto status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) return TANDEM_FAILED;
  if (status == cudaStreamCaptureStatusActive && std::getenv("TANDEM_FAKE_ALLOCATES") != nullptr) {
    return guarded([] {
      void* memory = nullptr;
      if (cudaMalloc(&memory, 1) == cudaSuccess) return;
      throw tandem::sdk::failed("it allocates in every pass");
    });
  }
  if (status == cudaStreamCaptureStatusActive && std::getenv("TANDEM_FAKE_FORGETS") != nullptr) {
    return TANDEM_OK;
  }
  const cudaError_t error =
      status == cudaStreamCaptureStatusActive
          ? cudaLaunchHostFunc(stream, again, &captured.emplace_back(std::move(body)))
          : cudaLaunchHostFunc(stream, once, new Body(std::move(body)));
  return error == cudaSuccess ? TANDEM_OK : TANDEM_FAILED;
}

template <tandem_pass_function tandem_kernel::*function>
tandem_status pass(void* handle, const tandem_call* call, const tandem_pass* pass) {
  const Handle& self = *static_cast<Handle*>(handle);
  return issue(*call, [&self, call = on_cpu(*call), pass = *pass] {
    static_cast<void>((self.kernel->*function)(self.handle, &call, &pass));
    if (function == &tandem_kernel::forward && self.fuses_relu) apply_relu(self, pass);
  });
}

tandem_status merge(void* handle, const tandem_call* call, float* target,
                    const float* const* sources, uint32_t count) {
  const Handle& self = *static_cast<Handle*>(handle);
  return issue(*call, [&self, call = on_cpu(*call), target,
                       all = std::vector<const float*>(sources, sources + count), count] {
    static_cast<void>(
        self.kernel->merge_forward_statistics(self.handle, &call, target, all.data(), count));
  });
}

void release(void* handle) {
  const std::unique_ptr<Handle> self(static_cast<Handle*>(handle));
  self->kernel->release(self->handle);
}

template <int index>
tandem_status prepare(const tandem_binding* binding, const tandem_call* call, void** handle,
                      tandem_kernel_report* report) {
  return guarded([&] {
    if (call->native_blas == nullptr || call->native_dnn == nullptr) {
      throw tandem::sdk::failed("a kernel is prepared on a stream without library handles");
    }
    cublasMath_t math{};
    cublasGetMathMode(static_cast<cublasHandle_t>(call->native_blas), &math);
    if (math != tandem::cuda::float32_sums) {
      throw tandem::sdk::failed("cuBLAS may add up parts of products in 16 bits");
    }
    auto self = std::make_unique<Handle>(Handle{of_cpu[index], nullptr});
    if (std::string(self->kernel->layer_type) == "Convolution") {
      self->algorithm = chosen_algorithm(*binding);
    }
    const tandem_call its_call = on_cpu(*call);
    tandem_binding its_binding = *binding;
    if (binding->fused_activation != TANDEM_ACTIVATION_NONE &&
        self->kernel->fused_activations == 0) {
      self->fuses_relu = true;
      self->output = binding->outputs[0];
      its_binding.fused_activation = TANDEM_ACTIVATION_NONE;
    }
    const tandem_status status =
        self->kernel->prepare(&its_binding, &its_call, &self->handle, report);
    if (status != TANDEM_OK) throw tandem::sdk::Refusal(status, tandem::sdk::explained());
    if (!self->algorithm.empty()) {
      report->algorithm = self->algorithm.c_str();
      report->is_measured = 1;
    }
    *handle = self.release();
  });
}

template <int index>
tandem_kernel wrapped() {
  tandem_kernel kernel = *of_cpu[index];
  kernel.device_kind = "cuda";
  kernel.fused_activations = 1U << TANDEM_ACTIVATION_RELU;
  kernel.prepare = &prepare<index>;
  kernel.release = &release;
  const auto replace = [](tandem_pass_function& function, tandem_pass_function by) {
    if (function != nullptr) function = by;
  };
  replace(kernel.forward, &pass<&tandem_kernel::forward>);
  replace(kernel.backward_data, &pass<&tandem_kernel::backward_data>);
  replace(kernel.backward_weights, &pass<&tandem_kernel::backward_weights>);
  replace(kernel.backward, &pass<&tandem_kernel::backward>);
  replace(kernel.forward_statistics, &pass<&tandem_kernel::forward_statistics>);
  replace(kernel.backward_statistics, &pass<&tandem_kernel::backward_statistics>);
  if (kernel.merge_forward_statistics != nullptr) kernel.merge_forward_statistics = &merge;
  return kernel;
}

template <int... indices>
std::vector<tandem_kernel> wrapped_all(std::integer_sequence<int, indices...>) {
  std::vector<tandem_kernel> kernels;
  ((indices < static_cast<int>(of_cpu.size()) ? kernels.push_back(wrapped<indices>()) : void()),
   ...);
  return kernels;
}

std::filesystem::path this_file() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&this_file), &here) == 0) return {};
  return here.dli_fname;
}

// The layers' modules are in the folder above this module's.
void load_layers(const tandem_host* host) {
  const auto folder = this_file().parent_path().parent_path() / "plugins";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (!file.path().filename().string().starts_with("tandem_layer_")) continue;
    void* library = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw tandem::sdk::failed(dlerror());
    const auto entry =
        reinterpret_cast<tandem_plugin_entry_function>(dlsym(library, TANDEM_ENTRY_SYMBOL));
    const tandem_layers& layers = *entry(host)->layers;
    std::copy_if(
        layers.kernels, layers.kernels + layers.kernel_count, std::back_inserter(of_cpu),
        [](const tandem_kernel* kernel) { return std::string(kernel->device_kind) == "cpu"; });
  }
  if (of_cpu.size() > max_kernels) throw tandem::sdk::failed("raise max_kernels");
}

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static std::vector<tandem_kernel> kernels;
  static std::vector<const tandem_kernel*> addresses;
  static tandem_plugin table{};
  static tandem_layers layers{
      sizeof layers, TANDEM_LAYERS_MAJOR, TANDEM_LAYERS_MINOR, 0, 0, nullptr, nullptr};
  tandem::sdk::host = host;
  table.abi_major = TANDEM_ABI_MAJOR;
  table.abi_minor = TANDEM_ABI_MINOR;
  table.struct_size = sizeof table;
  table.name = "tandem-fake-cuda";
  table.version = "0";
  const bool is_copy = this_file().stem() != "tandem_kernels_cuda_fake";
  if (is_copy || layers.kernel_count > 0) return &table;
  if (guarded([&] { load_layers(host); }) != TANDEM_OK) return nullptr;
  kernels = wrapped_all(std::make_integer_sequence<int, max_kernels>());
  for (const tandem_kernel& kernel : kernels) addresses.push_back(&kernel);
  layers.kernels = addresses.data();
  layers.kernel_count = static_cast<uint32_t>(addresses.size());
  table.layers = &layers;
  return &table;
}
