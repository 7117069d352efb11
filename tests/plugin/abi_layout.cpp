// The offsets of all fields of the ABI, fixed for ABI major 1, as old plugins depend on them. A
// field may be added at the end of a table that begins with struct_size: add it here, and raise
// TANDEM_ABI_MINOR. An assertion that fails here means a new major version.
#include <cstddef>

#include "plugins/abi.h"
#include "plugins/transport.h"

static_assert(TANDEM_ABI_MAJOR == 1);

static_assert(offsetof(tandem_shape, n) == 0);
static_assert(offsetof(tandem_shape, c) == 8);
static_assert(offsetof(tandem_shape, h) == 16);
static_assert(offsetof(tandem_shape, w) == 24);

static_assert(offsetof(tandem_tensor, shape) == 0);
static_assert(offsetof(tandem_tensor, dtype) == 32);
static_assert(offsetof(tandem_tensor, layout) == 36);

static_assert(offsetof(tandem_step, seed) == 0);
static_assert(offsetof(tandem_step, step) == 8);
static_assert(offsetof(tandem_step, rate) == 16);
static_assert(offsetof(tandem_step, samples) == 20);
static_assert(offsetof(tandem_step, first_row) == 24);
static_assert(offsetof(tandem_step, reserved) == 28);

static_assert(offsetof(tandem_host, abi_major) == 0);
static_assert(offsetof(tandem_host, abi_minor) == 4);
static_assert(offsetof(tandem_host, struct_size) == 8);
static_assert(offsetof(tandem_host, explain) == 16);
static_assert(offsetof(tandem_host, get_integer) == 24);
static_assert(offsetof(tandem_host, get_number) == 32);
static_assert(offsetof(tandem_host, get_text) == 40);
static_assert(offsetof(tandem_host, get_integers) == 48);
static_assert(offsetof(tandem_host, is_set) == 56);
static_assert(offsetof(tandem_host, explained) == 64);
static_assert(offsetof(tandem_host, get_numbers) == 72);

static_assert(offsetof(tandem_parameter, struct_size) == 0);
static_assert(offsetof(tandem_parameter, type) == 4);
static_assert(offsetof(tandem_parameter, block) == 8);
static_assert(offsetof(tandem_parameter, name) == 16);
static_assert(offsetof(tandem_parameter, default_value) == 24);
static_assert(offsetof(tandem_parameter, required) == 32);
static_assert(offsetof(tandem_parameter, minimum) == 40);
static_assert(offsetof(tandem_parameter, maximum) == 48);
static_assert(offsetof(tandem_parameter, choices) == 56);
static_assert(offsetof(tandem_parameter, help) == 64);

static_assert(offsetof(tandem_layer_query, struct_size) == 0);
static_assert(offsetof(tandem_layer_query, phase) == 4);
static_assert(offsetof(tandem_layer_query, attributes) == 8);
static_assert(offsetof(tandem_layer_query, inputs) == 16);
static_assert(offsetof(tandem_layer_query, input_count) == 24);
static_assert(offsetof(tandem_layer_query, output_count) == 28);

static_assert(offsetof(tandem_weight, name) == 0);
static_assert(offsetof(tandem_weight, shape) == 8);
static_assert(offsetof(tandem_weight, filler) == 40);
static_assert(offsetof(tandem_weight, initial) == 48);
static_assert(offsetof(tandem_weight, fan_in) == 56);
static_assert(offsetof(tandem_weight, fan_out) == 64);
static_assert(offsetof(tandem_weight, kind) == 72);

static_assert(offsetof(tandem_layer_cost, struct_size) == 0);
static_assert(offsetof(tandem_layer_cost, forward_flops) == 8);
static_assert(offsetof(tandem_layer_cost, backward_data_flops) == 16);
static_assert(offsetof(tandem_layer_cost, backward_weights_flops) == 24);
static_assert(offsetof(tandem_layer_cost, forward_bytes) == 32);
static_assert(offsetof(tandem_layer_cost, backward_data_bytes) == 40);
static_assert(offsetof(tandem_layer_cost, backward_weights_bytes) == 48);

static_assert(offsetof(tandem_layer_statistics, struct_size) == 0);
static_assert(offsetof(tandem_layer_statistics, forward) == 8);
static_assert(offsetof(tandem_layer_statistics, backward) == 16);

static_assert(offsetof(tandem_layer_type, struct_size) == 0);
static_assert(offsetof(tandem_layer_type, name) == 8);
static_assert(offsetof(tandem_layer_type, help) == 16);
static_assert(offsetof(tandem_layer_type, parameters) == 24);
static_assert(offsetof(tandem_layer_type, parameter_count) == 32);
static_assert(offsetof(tandem_layer_type, minimum_inputs) == 36);
static_assert(offsetof(tandem_layer_type, maximum_inputs) == 40);
static_assert(offsetof(tandem_layer_type, minimum_outputs) == 44);
static_assert(offsetof(tandem_layer_type, maximum_outputs) == 48);
static_assert(offsetof(tandem_layer_type, traits) == 56);
static_assert(offsetof(tandem_layer_type, shapes) == 64);
static_assert(offsetof(tandem_layer_type, weights) == 72);
static_assert(offsetof(tandem_layer_type, cost) == 80);
static_assert(offsetof(tandem_layer_type, statistics) == 88);
static_assert(offsetof(tandem_layer_type, activation) == 96);

static_assert(offsetof(tandem_binding, struct_size) == 0);
static_assert(offsetof(tandem_binding, phase) == 4);
static_assert(offsetof(tandem_binding, layer_index) == 8);
static_assert(offsetof(tandem_binding, flags) == 12);
static_assert(offsetof(tandem_binding, layer_name) == 16);
static_assert(offsetof(tandem_binding, attributes) == 24);
static_assert(offsetof(tandem_binding, inputs) == 32);
static_assert(offsetof(tandem_binding, input_count) == 40);
static_assert(offsetof(tandem_binding, outputs) == 48);
static_assert(offsetof(tandem_binding, output_count) == 56);
static_assert(offsetof(tandem_binding, weights) == 64);
static_assert(offsetof(tandem_binding, weight_count) == 72);
static_assert(offsetof(tandem_binding, batch_begin) == 80);
static_assert(offsetof(tandem_binding, batch_size) == 88);
static_assert(offsetof(tandem_binding, slice_begin) == 96);
static_assert(offsetof(tandem_binding, slice_end) == 104);
static_assert(offsetof(tandem_binding, input_begin) == 112);
static_assert(offsetof(tandem_binding, algorithm) == 120);
static_assert(offsetof(tandem_binding, activation) == 128);

static_assert(offsetof(tandem_layout_option, input) == 0);
static_assert(offsetof(tandem_layout_option, output) == 4);
static_assert(offsetof(tandem_layout_option, extra_bytes) == 8);

static_assert(offsetof(tandem_kernel_report, struct_size) == 0);
static_assert(offsetof(tandem_kernel_report, saved_bytes) == 8);
static_assert(offsetof(tandem_kernel_report, scratch_bytes) == 16);
static_assert(offsetof(tandem_kernel_report, statistics) == 24);
static_assert(offsetof(tandem_kernel_report, algorithm) == 32);

static_assert(offsetof(tandem_call, struct_size) == 0);
static_assert(offsetof(tandem_call, device) == 4);
static_assert(offsetof(tandem_call, threads) == 8);
static_assert(offsetof(tandem_call, native_stream) == 16);
static_assert(offsetof(tandem_call, native_blas) == 24);
static_assert(offsetof(tandem_call, native_dnn) == 32);

static_assert(offsetof(tandem_pass, struct_size) == 0);
static_assert(offsetof(tandem_pass, flags) == 4);
static_assert(offsetof(tandem_pass, inputs) == 8);
static_assert(offsetof(tandem_pass, outputs) == 16);
static_assert(offsetof(tandem_pass, weights) == 24);
static_assert(offsetof(tandem_pass, input_gradients) == 32);
static_assert(offsetof(tandem_pass, output_gradients) == 40);
static_assert(offsetof(tandem_pass, weight_gradients) == 48);
static_assert(offsetof(tandem_pass, saved) == 56);
static_assert(offsetof(tandem_pass, scratch) == 64);
static_assert(offsetof(tandem_pass, step) == 72);
static_assert(offsetof(tandem_pass, normaliser) == 80);
static_assert(offsetof(tandem_pass, statistics) == 88);
static_assert(offsetof(tandem_pass, row_labels) == 96);

static_assert(offsetof(tandem_kernel, struct_size) == 0);
static_assert(offsetof(tandem_kernel, layer_type) == 8);
static_assert(offsetof(tandem_kernel, device_kind) == 16);
static_assert(offsetof(tandem_kernel, layouts) == 24);
static_assert(offsetof(tandem_kernel, prepare) == 32);
static_assert(offsetof(tandem_kernel, release) == 40);
static_assert(offsetof(tandem_kernel, forward) == 48);
static_assert(offsetof(tandem_kernel, backward_data) == 56);
static_assert(offsetof(tandem_kernel, backward_weights) == 64);
static_assert(offsetof(tandem_kernel, backward) == 72);
static_assert(offsetof(tandem_kernel, forward_statistics) == 80);
static_assert(offsetof(tandem_kernel, backward_statistics) == 88);
static_assert(offsetof(tandem_kernel, merge_forward_statistics) == 96);
static_assert(offsetof(tandem_kernel, dtypes) == 104);
static_assert(offsetof(tandem_kernel, activations) == 112);

static_assert(offsetof(tandem_machine_options, struct_size) == 0);
static_assert(offsetof(tandem_machine_options, device_count) == 4);
static_assert(offsetof(tandem_machine_options, ordinals) == 8);
static_assert(offsetof(tandem_machine_options, threads) == 16);
static_assert(offsetof(tandem_machine_options, link_bandwidth) == 24);
static_assert(offsetof(tandem_machine_options, link_latency) == 32);
static_assert(offsetof(tandem_machine_options, delay_seed) == 40);
static_assert(offsetof(tandem_machine_options, delay_seconds) == 48);
static_assert(offsetof(tandem_machine_options, paced) == 56);
static_assert(offsetof(tandem_machine_options, topology) == 64);

static_assert(offsetof(tandem_topology, struct_size) == 0);
static_assert(offsetof(tandem_topology, channel_count) == 4);
static_assert(offsetof(tandem_topology, bandwidths) == 8);
static_assert(offsetof(tandem_topology, latencies) == 16);
static_assert(offsetof(tandem_topology, path_begins) == 24);
static_assert(offsetof(tandem_topology, path_channels) == 32);
static_assert(offsetof(tandem_topology, channel_names) == 40);

static_assert(offsetof(tandem_device_info, struct_size) == 0);
static_assert(offsetof(tandem_device_info, name) == 4);
static_assert(offsetof(tandem_device_info, memory_bytes) == 136);
static_assert(offsetof(tandem_device_info, available_bytes) == 144);
static_assert(offsetof(tandem_device_info, threads) == 152);
static_assert(offsetof(tandem_device_info, peak_flops) == 160);
static_assert(offsetof(tandem_device_info, memory_bandwidth) == 168);
static_assert(offsetof(tandem_device_info, kernels) == 176);

static_assert(offsetof(tandem_work, struct_size) == 0);
static_assert(offsetof(tandem_work, kind) == 4);
static_assert(offsetof(tandem_work, label) == 8);
static_assert(offsetof(tandem_work, predicted_seconds) == 16);
static_assert(offsetof(tandem_work, run) == 24);
static_assert(offsetof(tandem_work, context) == 32);

static_assert(offsetof(tandem_update, struct_size) == 0);
static_assert(offsetof(tandem_update, rule) == 4);
static_assert(offsetof(tandem_update, count) == 8);
static_assert(offsetof(tandem_update, weights) == 16);
static_assert(offsetof(tandem_update, gradient) == 24);
static_assert(offsetof(tandem_update, state) == 32);
static_assert(offsetof(tandem_update, state_count) == 40);
static_assert(offsetof(tandem_update, momentum) == 44);
static_assert(offsetof(tandem_update, decay) == 48);
static_assert(offsetof(tandem_update, rate_multiplier) == 52);
static_assert(offsetof(tandem_update, step) == 56);
static_assert(offsetof(tandem_update, found_inf) == 64);
static_assert(offsetof(tandem_update, momentum2) == 72);
static_assert(offsetof(tandem_update, delta) == 80);
static_assert(offsetof(tandem_update, clip) == 88);
static_assert(offsetof(tandem_update, gradient_scale) == 96);
static_assert(offsetof(tandem_update, trust_coefficient) == 104);
static_assert(offsetof(tandem_update, l1_decay) == 112);
static_assert(offsetof(tandem_update, gradient_square_count) == 116);
static_assert(offsetof(tandem_update, gradient_squares) == 120);
static_assert(offsetof(tandem_update, gradient_square) == 128);
static_assert(offsetof(tandem_update, weight_square) == 136);

static_assert(offsetof(tandem_backend, struct_size) == 0);
static_assert(offsetof(tandem_backend, kind) == 8);
static_assert(offsetof(tandem_backend, help) == 16);
static_assert(offsetof(tandem_backend, count) == 24);
static_assert(offsetof(tandem_backend, describe) == 32);
static_assert(offsetof(tandem_backend, open) == 40);
static_assert(offsetof(tandem_backend, close) == 48);
static_assert(offsetof(tandem_backend, device_info) == 56);
static_assert(offsetof(tandem_backend, allocate) == 64);
static_assert(offsetof(tandem_backend, free) == 72);
static_assert(offsetof(tandem_backend, create_stream) == 80);
static_assert(offsetof(tandem_backend, destroy_stream) == 88);
static_assert(offsetof(tandem_backend, create_event) == 96);
static_assert(offsetof(tandem_backend, destroy_event) == 104);
static_assert(offsetof(tandem_backend, submit) == 112);
static_assert(offsetof(tandem_backend, copy) == 120);
static_assert(offsetof(tandem_backend, wait) == 128);
static_assert(offsetof(tandem_backend, record) == 136);
static_assert(offsetof(tandem_backend, synchronize) == 144);
static_assert(offsetof(tandem_backend, event_time) == 152);
static_assert(offsetof(tandem_backend, fill) == 160);
static_assert(offsetof(tandem_backend, add) == 168);
static_assert(offsetof(tandem_backend, update) == 176);
static_assert(offsetof(tandem_backend, check_finite) == 184);
static_assert(offsetof(tandem_backend, sum_of_squares) == 192);
static_assert(offsetof(tandem_backend, convert_pixels) == 200);
static_assert(offsetof(tandem_backend, find_topology) == 208);
static_assert(offsetof(tandem_backend, begin_capture) == 216);
static_assert(offsetof(tandem_backend, end_capture) == 224);
static_assert(offsetof(tandem_backend, launch) == 232);
static_assert(offsetof(tandem_backend, destroy_graph) == 240);
static_assert(offsetof(tandem_backend, copy_rows) == 248);
static_assert(offsetof(tandem_backend, capabilities) == 256);

static_assert(offsetof(tandem_rows, struct_size) == 0);
static_assert(offsetof(tandem_rows, target_device) == 4);
static_assert(offsetof(tandem_rows, source_device) == 8);
static_assert(offsetof(tandem_rows, target) == 16);
static_assert(offsetof(tandem_rows, source) == 24);
static_assert(offsetof(tandem_rows, target_stride) == 32);
static_assert(offsetof(tandem_rows, source_stride) == 40);
static_assert(offsetof(tandem_rows, row_bytes) == 48);
static_assert(offsetof(tandem_rows, row_count) == 56);

static_assert(offsetof(tandem_pixels, struct_size) == 0);
static_assert(offsetof(tandem_pixels, shape) == 8);
static_assert(offsetof(tandem_pixels, pixels) == 40);
static_assert(offsetof(tandem_pixels, target) == 48);
static_assert(offsetof(tandem_pixels, means) == 56);
static_assert(offsetof(tandem_pixels, scale) == 72);

static_assert(offsetof(tandem_dataset_request, struct_size) == 0);
static_assert(offsetof(tandem_dataset_request, phase) == 4);
static_assert(offsetof(tandem_dataset_request, source) == 8);
static_assert(offsetof(tandem_dataset_request, split) == 16);
static_assert(offsetof(tandem_dataset_request, class_names) == 24);
static_assert(offsetof(tandem_dataset_request, attributes) == 32);
static_assert(offsetof(tandem_dataset_request, seed) == 40);
static_assert(offsetof(tandem_dataset_request, shape) == 48);
static_assert(offsetof(tandem_dataset_request, inputs) == 80);
static_assert(offsetof(tandem_dataset_request, input_count) == 88);

static_assert(offsetof(tandem_dataset_info, struct_size) == 0);
static_assert(offsetof(tandem_dataset_info, size) == 8);
static_assert(offsetof(tandem_dataset_info, class_count) == 16);
static_assert(offsetof(tandem_dataset_info, shape) == 24);
static_assert(offsetof(tandem_dataset_info, split_is_drawn) == 56);
static_assert(offsetof(tandem_dataset_info, has_bytes) == 60);
static_assert(offsetof(tandem_dataset_info, byte_means) == 64);
static_assert(offsetof(tandem_dataset_info, byte_scale) == 80);

static_assert(offsetof(tandem_sample_info, struct_size) == 0);
static_assert(offsetof(tandem_sample_info, channels) == 4);
static_assert(offsetof(tandem_sample_info, width) == 8);
static_assert(offsetof(tandem_sample_info, height) == 16);
static_assert(offsetof(tandem_sample_info, bytes) == 24);
static_assert(offsetof(tandem_sample_info, content) == 32);
static_assert(offsetof(tandem_sample_info, format) == 40);

static_assert(offsetof(tandem_pack_request, struct_size) == 0);
static_assert(offsetof(tandem_pack_request, split_count) == 4);
static_assert(offsetof(tandem_pack_request, handles) == 8);
static_assert(offsetof(tandem_pack_request, splits) == 16);
static_assert(offsetof(tandem_pack_request, path) == 24);
static_assert(offsetof(tandem_pack_request, shorter_side) == 32);
static_assert(offsetof(tandem_pack_request, quality) == 40);
static_assert(offsetof(tandem_pack_request, threads) == 44);
static_assert(offsetof(tandem_pack_request, seed) == 48);
static_assert(offsetof(tandem_pack_request, progress) == 56);
static_assert(offsetof(tandem_pack_request, left_out) == 64);
static_assert(offsetof(tandem_pack_request, user) == 72);

static_assert(offsetof(tandem_dataset_type, struct_size) == 0);
static_assert(offsetof(tandem_dataset_type, name) == 8);
static_assert(offsetof(tandem_dataset_type, help) == 16);
static_assert(offsetof(tandem_dataset_type, parameters) == 24);
static_assert(offsetof(tandem_dataset_type, parameter_count) == 32);
static_assert(offsetof(tandem_dataset_type, open) == 40);
static_assert(offsetof(tandem_dataset_type, close) == 48);
static_assert(offsetof(tandem_dataset_type, class_name) == 56);
static_assert(offsetof(tandem_dataset_type, sample_name) == 64);
static_assert(offsetof(tandem_dataset_type, notes) == 72);
static_assert(offsetof(tandem_dataset_type, get) == 80);
static_assert(offsetof(tandem_dataset_type, get_inputs) == 88);
static_assert(offsetof(tandem_dataset_type, recognizes) == 96);
static_assert(offsetof(tandem_dataset_type, label) == 104);
static_assert(offsetof(tandem_dataset_type, describe) == 112);
static_assert(offsetof(tandem_dataset_type, pack) == 120);
static_assert(offsetof(tandem_dataset_type, get_bytes) == 128);

static_assert(offsetof(tandem_plugin, abi_major) == 0);
static_assert(offsetof(tandem_plugin, abi_minor) == 4);
static_assert(offsetof(tandem_plugin, struct_size) == 8);
static_assert(offsetof(tandem_plugin, name) == 16);
static_assert(offsetof(tandem_plugin, version) == 24);
static_assert(offsetof(tandem_plugin, layer_types) == 32);
static_assert(offsetof(tandem_plugin, layer_type_count) == 40);
static_assert(offsetof(tandem_plugin, kernels) == 48);
static_assert(offsetof(tandem_plugin, kernel_count) == 56);
static_assert(offsetof(tandem_plugin, backends) == 64);
static_assert(offsetof(tandem_plugin, backend_count) == 72);
static_assert(offsetof(tandem_plugin, dataset_types) == 80);
static_assert(offsetof(tandem_plugin, dataset_type_count) == 88);
static_assert(offsetof(tandem_plugin, transports) == 96);
static_assert(offsetof(tandem_plugin, transport_count) == 104);

static_assert(offsetof(tandem_part, address) == 0);
static_assert(offsetof(tandem_part, bytes) == 8);

static_assert(offsetof(tandem_transport, struct_size) == 0);
static_assert(offsetof(tandem_transport, name) == 8);
static_assert(offsetof(tandem_transport, help) == 16);
static_assert(offsetof(tandem_transport, open) == 24);
static_assert(offsetof(tandem_transport, close) == 32);
static_assert(offsetof(tandem_transport, rank) == 40);
static_assert(offsetof(tandem_transport, size) == 48);
static_assert(offsetof(tandem_transport, send) == 56);
static_assert(offsetof(tandem_transport, receive) == 64);
static_assert(offsetof(tandem_transport, broadcast) == 72);
static_assert(offsetof(tandem_transport, abort) == 80);
