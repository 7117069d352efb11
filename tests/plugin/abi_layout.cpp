// The offsets of all fields of the ABI and the sizes of its structs, fixed for major version 2, as
// old plugins depend on them (docs/reference/abi.md). A field may be added at the end of a struct
// that begins with struct_size, or of an array's element whose size is passed: never in the
// padding, that is at an offset below the size that stands here. Then raise the minor version of
// its header, add the field here and leave the size, as "at least". Any other assertion that fails
// here means a new major version.
#include <cstddef>

#include "plugins/abi.h"

static_assert(TANDEM_ABI_MAJOR == 2);
static_assert(TANDEM_LAYERS_MAJOR == 2);
static_assert(TANDEM_DATASETS_MAJOR == 2);
static_assert(TANDEM_BACKENDS_MAJOR == 2);
static_assert(TANDEM_TRANSPORTS_MAJOR == 2);

static_assert(offsetof(tandem_shape, n) == 0);
static_assert(offsetof(tandem_shape, c) == 8);
static_assert(offsetof(tandem_shape, h) == 16);
static_assert(offsetof(tandem_shape, w) == 24);
static_assert(sizeof(tandem_shape) == 32);

static_assert(offsetof(tandem_tensor, shape) == 0);
static_assert(offsetof(tandem_tensor, dtype) == 32);
static_assert(offsetof(tandem_tensor, layout) == 36);
static_assert(sizeof(tandem_tensor) == 40);

static_assert(offsetof(tandem_step, seed) == 0);
static_assert(offsetof(tandem_step, step) == 8);
static_assert(offsetof(tandem_step, rate) == 16);
static_assert(offsetof(tandem_step, samples) == 20);
static_assert(offsetof(tandem_step, first_row) == 24);
static_assert(offsetof(tandem_step, reserved) == 28);
static_assert(sizeof(tandem_step) == 32);

static_assert(offsetof(tandem_call, struct_size) == 0);
static_assert(offsetof(tandem_call, device) == 4);
static_assert(offsetof(tandem_call, threads) == 8);
static_assert(offsetof(tandem_call, native_stream) == 16);
static_assert(offsetof(tandem_call, native_blas) == 24);
static_assert(offsetof(tandem_call, native_dnn) == 32);
static_assert(sizeof(tandem_call) == 40);

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
static_assert(offsetof(tandem_host, layers_major) == 80);
static_assert(offsetof(tandem_host, layers_minor) == 84);
static_assert(offsetof(tandem_host, datasets_major) == 88);
static_assert(offsetof(tandem_host, datasets_minor) == 92);
static_assert(offsetof(tandem_host, backends_major) == 96);
static_assert(offsetof(tandem_host, backends_minor) == 100);
static_assert(offsetof(tandem_host, transports_major) == 104);
static_assert(offsetof(tandem_host, transports_minor) == 108);
static_assert(sizeof(tandem_host) == 112);

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
static_assert(sizeof(tandem_parameter) == 72);

static_assert(offsetof(tandem_input, struct_size) == 0);
static_assert(offsetof(tandem_input, role) == 4);
static_assert(offsetof(tandem_input, name) == 8);
static_assert(sizeof(tandem_input) == 16);

static_assert(offsetof(tandem_layer_query, struct_size) == 0);
static_assert(offsetof(tandem_layer_query, phase) == 4);
static_assert(offsetof(tandem_layer_query, attributes) == 8);
static_assert(offsetof(tandem_layer_query, inputs) == 16);
static_assert(offsetof(tandem_layer_query, input_count) == 24);
static_assert(offsetof(tandem_layer_query, output_count) == 28);
static_assert(sizeof(tandem_layer_query) == 32);

static_assert(offsetof(tandem_weight, name) == 0);
static_assert(offsetof(tandem_weight, shape) == 8);
static_assert(offsetof(tandem_weight, filler) == 40);
static_assert(offsetof(tandem_weight, initial) == 48);
static_assert(offsetof(tandem_weight, fan_in) == 56);
static_assert(offsetof(tandem_weight, fan_out) == 64);
static_assert(offsetof(tandem_weight, kind) == 72);
static_assert(sizeof(tandem_weight) == 80);

static_assert(offsetof(tandem_layer_cost, struct_size) == 0);
static_assert(offsetof(tandem_layer_cost, forward_flops) == 8);
static_assert(offsetof(tandem_layer_cost, backward_data_flops) == 16);
static_assert(offsetof(tandem_layer_cost, backward_weights_flops) == 24);
static_assert(offsetof(tandem_layer_cost, forward_bytes) == 32);
static_assert(offsetof(tandem_layer_cost, backward_data_bytes) == 40);
static_assert(offsetof(tandem_layer_cost, backward_weights_bytes) == 48);
static_assert(sizeof(tandem_layer_cost) == 56);

static_assert(offsetof(tandem_layer_statistics, struct_size) == 0);
static_assert(offsetof(tandem_layer_statistics, forward) == 8);
static_assert(offsetof(tandem_layer_statistics, backward) == 16);
static_assert(sizeof(tandem_layer_statistics) == 24);

static_assert(offsetof(tandem_layer_type, struct_size) == 0);
static_assert(offsetof(tandem_layer_type, name) == 8);
static_assert(offsetof(tandem_layer_type, help) == 16);
static_assert(offsetof(tandem_layer_type, parameters) == 24);
static_assert(offsetof(tandem_layer_type, parameter_count) == 32);
static_assert(offsetof(tandem_layer_type, inputs) == 40);
static_assert(offsetof(tandem_layer_type, input_count) == 48);
static_assert(offsetof(tandem_layer_type, minimum_inputs) == 52);
static_assert(offsetof(tandem_layer_type, maximum_inputs) == 56);
static_assert(offsetof(tandem_layer_type, minimum_outputs) == 60);
static_assert(offsetof(tandem_layer_type, maximum_outputs) == 64);
static_assert(offsetof(tandem_layer_type, traits) == 72);
static_assert(offsetof(tandem_layer_type, shapes) == 80);
static_assert(offsetof(tandem_layer_type, weights) == 88);
static_assert(offsetof(tandem_layer_type, cost) == 96);
static_assert(offsetof(tandem_layer_type, statistics) == 104);
static_assert(offsetof(tandem_layer_type, activation) == 112);
static_assert(sizeof(tandem_layer_type) == 120);

static_assert(offsetof(tandem_binding, struct_size) == 0);
static_assert(offsetof(tandem_binding, phase) == 4);
static_assert(offsetof(tandem_binding, layer_index) == 8);
static_assert(offsetof(tandem_binding, flags) == 12);
static_assert(offsetof(tandem_binding, layer_name) == 16);
static_assert(offsetof(tandem_binding, attributes) == 24);
static_assert(offsetof(tandem_binding, inputs) == 32);
static_assert(offsetof(tandem_binding, input_count) == 40);
static_assert(offsetof(tandem_binding, tensor_size) == 44);
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
static_assert(offsetof(tandem_binding, fused_activation) == 128);
static_assert(offsetof(tandem_binding, activation_before) == 132);
static_assert(sizeof(tandem_binding) == 136);

static_assert(offsetof(tandem_layout_option, input) == 0);
static_assert(offsetof(tandem_layout_option, output) == 4);
static_assert(offsetof(tandem_layout_option, extra_bytes) == 8);
static_assert(sizeof(tandem_layout_option) == 16);

static_assert(offsetof(tandem_kernel_report, struct_size) == 0);
static_assert(offsetof(tandem_kernel_report, saved_bytes) == 8);
static_assert(offsetof(tandem_kernel_report, scratch_bytes) == 16);
static_assert(offsetof(tandem_kernel_report, statistics) == 24);
static_assert(offsetof(tandem_kernel_report, algorithm) == 32);
static_assert(offsetof(tandem_kernel_report, is_measured) == 40);
static_assert(sizeof(tandem_kernel_report) == 48);

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
static_assert(offsetof(tandem_pass, addend) == 104);
static_assert(sizeof(tandem_pass) == 112);

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
static_assert(offsetof(tandem_kernel, fused_activations) == 108);
static_assert(offsetof(tandem_kernel, fused_gradients) == 112);
static_assert(offsetof(tandem_kernel, gradients_before) == 116);
static_assert(offsetof(tandem_kernel, fuses_sum) == 120);
static_assert(sizeof(tandem_kernel) == 128);

static_assert(offsetof(tandem_layers, struct_size) == 0);
static_assert(offsetof(tandem_layers, major) == 4);
static_assert(offsetof(tandem_layers, minor) == 8);
static_assert(offsetof(tandem_layers, type_count) == 12);
static_assert(offsetof(tandem_layers, kernel_count) == 16);
static_assert(offsetof(tandem_layers, types) == 24);
static_assert(offsetof(tandem_layers, kernels) == 32);
static_assert(sizeof(tandem_layers) == 40);

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
static_assert(sizeof(tandem_dataset_request) == 96);

static_assert(offsetof(tandem_dataset_info, struct_size) == 0);
static_assert(offsetof(tandem_dataset_info, size) == 8);
static_assert(offsetof(tandem_dataset_info, class_count) == 16);
static_assert(offsetof(tandem_dataset_info, shape) == 24);
static_assert(offsetof(tandem_dataset_info, split_is_drawn) == 56);
static_assert(offsetof(tandem_dataset_info, has_bytes) == 60);
static_assert(offsetof(tandem_dataset_info, byte_means) == 64);
static_assert(offsetof(tandem_dataset_info, byte_scale) == 80);
static_assert(offsetof(tandem_dataset_info, task) == 88);
static_assert(sizeof(tandem_dataset_info) == 96);

static_assert(offsetof(tandem_sample_info, struct_size) == 0);
static_assert(offsetof(tandem_sample_info, channels) == 4);
static_assert(offsetof(tandem_sample_info, width) == 8);
static_assert(offsetof(tandem_sample_info, height) == 16);
static_assert(offsetof(tandem_sample_info, bytes) == 24);
static_assert(offsetof(tandem_sample_info, content) == 32);
static_assert(offsetof(tandem_sample_info, format) == 40);
static_assert(sizeof(tandem_sample_info) == 48);

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
static_assert(sizeof(tandem_pack_request) == 80);

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
static_assert(offsetof(tandem_dataset_type, targets) == 136);
static_assert(sizeof(tandem_dataset_type) == 144);

static_assert(offsetof(tandem_datasets, struct_size) == 0);
static_assert(offsetof(tandem_datasets, major) == 4);
static_assert(offsetof(tandem_datasets, minor) == 8);
static_assert(offsetof(tandem_datasets, type_count) == 12);
static_assert(offsetof(tandem_datasets, types) == 16);
static_assert(sizeof(tandem_datasets) == 24);

static_assert(offsetof(tandem_topology, struct_size) == 0);
static_assert(offsetof(tandem_topology, channel_count) == 4);
static_assert(offsetof(tandem_topology, bandwidths) == 8);
static_assert(offsetof(tandem_topology, latencies) == 16);
static_assert(offsetof(tandem_topology, path_begins) == 24);
static_assert(offsetof(tandem_topology, path_channels) == 32);
static_assert(offsetof(tandem_topology, channel_names) == 40);
static_assert(sizeof(tandem_topology) == 48);

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
static_assert(sizeof(tandem_machine_options) == 72);

static_assert(offsetof(tandem_device_info, struct_size) == 0);
static_assert(offsetof(tandem_device_info, name) == 4);
static_assert(offsetof(tandem_device_info, memory_bytes) == 136);
static_assert(offsetof(tandem_device_info, available_bytes) == 144);
static_assert(offsetof(tandem_device_info, threads) == 152);
static_assert(offsetof(tandem_device_info, peak_flops) == 160);
static_assert(offsetof(tandem_device_info, memory_bandwidth) == 168);
static_assert(offsetof(tandem_device_info, kernels) == 176);
static_assert(sizeof(tandem_device_info) == 304);

static_assert(offsetof(tandem_work, struct_size) == 0);
static_assert(offsetof(tandem_work, kind) == 4);
static_assert(offsetof(tandem_work, label) == 8);
static_assert(offsetof(tandem_work, predicted_seconds) == 16);
static_assert(offsetof(tandem_work, run) == 24);
static_assert(offsetof(tandem_work, context) == 32);
static_assert(sizeof(tandem_work) == 40);

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
static_assert(sizeof(tandem_update) == 144);

static_assert(offsetof(tandem_pixels, struct_size) == 0);
static_assert(offsetof(tandem_pixels, shape) == 8);
static_assert(offsetof(tandem_pixels, pixels) == 40);
static_assert(offsetof(tandem_pixels, target) == 48);
static_assert(offsetof(tandem_pixels, means) == 56);
static_assert(offsetof(tandem_pixels, scale) == 72);
static_assert(sizeof(tandem_pixels) == 80);

static_assert(offsetof(tandem_rows, struct_size) == 0);
static_assert(offsetof(tandem_rows, target_device) == 4);
static_assert(offsetof(tandem_rows, source_device) == 8);
static_assert(offsetof(tandem_rows, target) == 16);
static_assert(offsetof(tandem_rows, source) == 24);
static_assert(offsetof(tandem_rows, target_stride) == 32);
static_assert(offsetof(tandem_rows, source_stride) == 40);
static_assert(offsetof(tandem_rows, row_bytes) == 48);
static_assert(offsetof(tandem_rows, row_count) == 56);
static_assert(sizeof(tandem_rows) == 64);

static_assert(offsetof(tandem_buffers, struct_size) == 0);
static_assert(offsetof(tandem_buffers, host_addressable) == 4);
static_assert(offsetof(tandem_buffers, allocate) == 8);
static_assert(offsetof(tandem_buffers, free) == 16);
static_assert(sizeof(tandem_buffers) == 24);

static_assert(offsetof(tandem_streams, struct_size) == 0);
static_assert(offsetof(tandem_streams, virtual_time) == 4);
static_assert(offsetof(tandem_streams, create_stream) == 8);
static_assert(offsetof(tandem_streams, destroy_stream) == 16);
static_assert(offsetof(tandem_streams, create_event) == 24);
static_assert(offsetof(tandem_streams, destroy_event) == 32);
static_assert(offsetof(tandem_streams, submit) == 40);
static_assert(offsetof(tandem_streams, copy) == 48);
static_assert(offsetof(tandem_streams, wait) == 56);
static_assert(offsetof(tandem_streams, record) == 64);
static_assert(offsetof(tandem_streams, synchronize) == 72);
static_assert(offsetof(tandem_streams, event_time) == 80);
static_assert(offsetof(tandem_streams, copy_rows) == 88);
static_assert(offsetof(tandem_streams, messages) == 96);
static_assert(sizeof(tandem_streams) == 104);

static_assert(offsetof(tandem_arithmetic, struct_size) == 0);
static_assert(offsetof(tandem_arithmetic, dtypes) == 4);
static_assert(offsetof(tandem_arithmetic, tf32) == 8);
static_assert(offsetof(tandem_arithmetic, fill) == 16);
static_assert(offsetof(tandem_arithmetic, add) == 24);
static_assert(offsetof(tandem_arithmetic, update) == 32);
static_assert(offsetof(tandem_arithmetic, check_finite) == 40);
static_assert(offsetof(tandem_arithmetic, sum_of_squares) == 48);
static_assert(offsetof(tandem_arithmetic, convert_pixels) == 56);
static_assert(sizeof(tandem_arithmetic) == 64);

static_assert(offsetof(tandem_links, struct_size) == 0);
static_assert(offsetof(tandem_links, find_topology) == 8);
static_assert(sizeof(tandem_links) == 16);

static_assert(offsetof(tandem_capture, struct_size) == 0);
static_assert(offsetof(tandem_capture, begin) == 8);
static_assert(offsetof(tandem_capture, end) == 16);
static_assert(offsetof(tandem_capture, launch) == 24);
static_assert(offsetof(tandem_capture, destroy_graph) == 32);
static_assert(sizeof(tandem_capture) == 40);

static_assert(offsetof(tandem_backend, struct_size) == 0);
static_assert(offsetof(tandem_backend, counted_devices) == 4);
static_assert(offsetof(tandem_backend, kind) == 8);
static_assert(offsetof(tandem_backend, help) == 16);
static_assert(offsetof(tandem_backend, count) == 24);
static_assert(offsetof(tandem_backend, describe) == 32);
static_assert(offsetof(tandem_backend, open) == 40);
static_assert(offsetof(tandem_backend, close) == 48);
static_assert(offsetof(tandem_backend, device_info) == 56);
static_assert(offsetof(tandem_backend, buffers) == 64);
static_assert(offsetof(tandem_backend, streams) == 72);
static_assert(offsetof(tandem_backend, arithmetic) == 80);
static_assert(offsetof(tandem_backend, links) == 88);
static_assert(offsetof(tandem_backend, capture) == 96);
static_assert(sizeof(tandem_backend) == 104);

static_assert(offsetof(tandem_backends, struct_size) == 0);
static_assert(offsetof(tandem_backends, major) == 4);
static_assert(offsetof(tandem_backends, minor) == 8);
static_assert(offsetof(tandem_backends, backend_count) == 12);
static_assert(offsetof(tandem_backends, backends) == 16);
static_assert(sizeof(tandem_backends) == 24);

static_assert(offsetof(tandem_part, address) == 0);
static_assert(offsetof(tandem_part, bytes) == 8);
static_assert(sizeof(tandem_part) == 16);

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
static_assert(sizeof(tandem_transport) == 88);

static_assert(offsetof(tandem_transports, struct_size) == 0);
static_assert(offsetof(tandem_transports, major) == 4);
static_assert(offsetof(tandem_transports, minor) == 8);
static_assert(offsetof(tandem_transports, transport_count) == 12);
static_assert(offsetof(tandem_transports, transports) == 16);
static_assert(offsetof(tandem_transports, device_transport_count) == 24);
static_assert(offsetof(tandem_transports, device_transports) == 32);
static_assert(sizeof(tandem_transports) == 40);

static_assert(offsetof(tandem_device_transport, struct_size) == 0);
static_assert(offsetof(tandem_device_transport, device_kind) == 8);
static_assert(offsetof(tandem_device_transport, help) == 16);
static_assert(offsetof(tandem_device_transport, make_key) == 24);
static_assert(offsetof(tandem_device_transport, open) == 32);
static_assert(offsetof(tandem_device_transport, transfer) == 40);
static_assert(offsetof(tandem_device_transport, check) == 48);
static_assert(offsetof(tandem_device_transport, abort) == 56);
static_assert(offsetof(tandem_device_transport, close) == 64);
static_assert(sizeof(tandem_device_transport) == 72);

static_assert(offsetof(tandem_plugin, abi_major) == 0);
static_assert(offsetof(tandem_plugin, abi_minor) == 4);
static_assert(offsetof(tandem_plugin, struct_size) == 8);
static_assert(offsetof(tandem_plugin, name) == 16);
static_assert(offsetof(tandem_plugin, version) == 24);
static_assert(offsetof(tandem_plugin, layers) == 32);
static_assert(offsetof(tandem_plugin, datasets) == 40);
static_assert(offsetof(tandem_plugin, backends) == 48);
static_assert(offsetof(tandem_plugin, transports) == 56);
static_assert(sizeof(tandem_plugin) == 64);
