// The header-only C++ wrapper over abi.h for authors of plugins. An author writes small classes and
// never sees the C tables. An exception that a class throws becomes a status and a reason, so that
// no C++ exception or type crosses the ABI. The parts: sdk/layer_type.h, what a layer is;
// sdk/binding.h and sdk/pass.h, what its kernel gets; sdk/dataset.h; sdk/parameters.h.
//
//   struct Swish : tandem::sdk::LayerType { ... };   what the layer is
//   struct SwishCpu {                                how it runs on a kind of device
//     SwishCpu(const Binding&, const Call&);
//     void forward(const Call&, const Pass&);
//     void backward_data(const Call&, const Pass&);
//   };
//   extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
//     tandem::sdk::Plugin plugin(host, "acme-swish", "1.0");
//     return plugin.layer<Swish>().kernel<Swish, SwishCpu>("cpu").table();
//   }
//
// Pointers of a Pass lie in memory that the host reads and writes. A kernel of a device with memory
// of its own takes a DevicePass instead, whose pointers cannot be read by accident.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "sdk.h needs C++20: use tandem_add_plugin, set CMAKE_CXX_STANDARD 20, or pass -std=c++20"
#endif

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "abi.h"
#include "random.h"
#include "sdk/binding.h"
#include "sdk/dataset.h"
#include "sdk/host.h"
#include "sdk/layer_type.h"
#include "sdk/parameters.h"
#include "sdk/pass.h"
#include "sdk/tables.h"

namespace tandem::sdk {

// For a plugin that cannot serve this machine: `return not_here(host, "no CUDA device found");`
inline const tandem_plugin* not_here(const tandem_host* host_table, const std::string& reason) {
  host_table->explain(reason.c_str());
  return nullptr;
}

// Collects the tables of the module. They live as long as the process, like the module.
class Plugin {
 public:
  Plugin(const tandem_host* host_table, const char* name, const char* version)
      : tables_(new Tables{}) {
    if (host != host_table) host = host_table;  // a second registry: its threads may be running
    tables_->older = newest_.exchange(tables_);
    tables_->table.abi_major = TANDEM_ABI_MAJOR;
    tables_->table.abi_minor = TANDEM_ABI_MINOR;
    tables_->table.struct_size = sizeof(tandem_plugin);
    tables_->table.name = name;
    tables_->table.version = version;
  }
  template <class T>
  Plugin& layer() {
    tables_->types.push_back(detail::LayerTable<T>::table());
    return *this;
  }
  // K needs a constructor (const Binding&, const Call&) and forward(const Call&, const Pass&), or
  // with a const DevicePass& where the host cannot read the device's memory. It may have, with the
  // signature of forward: backward_data, backward_weights, backward, forward_statistics,
  // backward_statistics. It may also have:
  // - merge_forward_statistics(const Call&, float* target, const float* const* sources, uint32_t
  //   source_count), if its statistics cannot be added;
  // - static LayoutOptions layouts(const Binding&), if it supports more than NCHW;
  // - static constexpr uint32_t dtypes, bits 1 << TANDEM_FLOAT32 and so on, if it supports more
  //   than float32;
  // - static constexpr uint32_t fused_activations, bits 1 << TANDEM_ACTIVATION_RELU and so on, if
  //   it can fuse them, and fused_gradients, if its backward passes apply their gradients, too;
  // - static constexpr uint32_t gradients_before, the same bits, if its backward_data applies the
  //   gradient of an activation before the layer;
  // - static constexpr bool fuses_sum = true, if forward can add another layer's output to its own.
  template <class T, class K>
  Plugin& kernel(const char* device_kind) {
    using Table = detail::KernelTable<K>;
    static_assert(
        requires { &K::forward; },
        "a kernel needs a public void forward(const Call&, const Pass&)");
    tables_->kernels.push_back(&tables_->owned_kernels.emplace_back(tandem_kernel{
        sizeof(tandem_kernel), T{}.name(), device_kind, &Table::layouts, &Table::prepare,
        &Table::release, Table::forward_or_null(), Table::backward_data_or_null(),
        Table::backward_weights_or_null(), Table::backward_or_null(),
        Table::forward_statistics_or_null(), Table::backward_statistics_or_null(),
        Table::merge_or_null(), Table::dtypes(), Table::activations(), Table::gradients(),
        Table::gradients_before(), Table::fuses_sum()}));
    return *this;
  }
  Plugin& backend(const tandem_backend* table) { return tables_->backends.push_back(table), *this; }
  Plugin& transport(const tandem_transport* table) {
    return tables_->transports.push_back(table), *this;
  }
  Plugin& device_transport(const tandem_device_transport* table) {
    return tables_->device_transports.push_back(table), *this;
  }
  // D derives from DatasetType.
  template <class D>
  Plugin& dataset() {
    static_assert(std::is_base_of_v<DatasetType, D>, "a data set derives from sdk::DatasetType");
    tables_->datasets.push_back(detail::DatasetTable<D>::table());
    return *this;
  }
  const tandem_plugin* table() {
    Tables& t = *tables_;
    if (!t.types.empty() || !t.kernels.empty()) {
      t.layer_part = {sizeof(tandem_layers), TANDEM_LAYERS_MAJOR, TANDEM_LAYERS_MINOR,
                      size(t.types),         size(t.kernels),     t.types.data(),
                      t.kernels.data()};
      t.table.layers = &t.layer_part;
    }
    if (!t.datasets.empty()) {
      t.dataset_part = {sizeof(tandem_datasets), TANDEM_DATASETS_MAJOR, TANDEM_DATASETS_MINOR,
                        size(t.datasets), t.datasets.data()};
      t.table.datasets = &t.dataset_part;
    }
    if (!t.backends.empty()) {
      t.backend_part = {sizeof(tandem_backends), TANDEM_BACKENDS_MAJOR, TANDEM_BACKENDS_MINOR,
                        size(t.backends), t.backends.data()};
      t.table.backends = &t.backend_part;
    }
    if (!t.transports.empty() || !t.device_transports.empty()) {
      t.transport_part = {sizeof(tandem_transports), TANDEM_TRANSPORTS_MAJOR,
                          TANDEM_TRANSPORTS_MINOR,   size(t.transports),
                          t.transports.data(),       size(t.device_transports),
                          t.device_transports.data()};
      t.table.transports = &t.transport_part;
    }
    return &t.table;
  }

 private:
  template <class T>
  static uint32_t size(const std::vector<const T*>& tables) {
    return static_cast<uint32_t>(tables.size());
  }

  struct Tables {
    tandem_plugin table{};
    tandem_layers layer_part{};
    tandem_datasets dataset_part{};
    tandem_backends backend_part{};
    tandem_transports transport_part{};
    std::vector<const tandem_layer_type*> types;
    std::vector<const tandem_kernel*> kernels;
    std::vector<const tandem_dataset_type*> datasets;
    std::vector<const tandem_backend*> backends;
    std::vector<const tandem_transport*> transports;
    std::vector<const tandem_device_transport*> device_transports;
    std::deque<tandem_kernel> owned_kernels;
    Tables* older = nullptr;
  };
  // The host uses the tables as long as the process lives, and two registries call the entry twice.
  // So nothing is freed, and everything stays reachable from here.
  inline static std::atomic<Tables*> newest_{nullptr};
  Tables* tables_;
};

}  // namespace tandem::sdk
