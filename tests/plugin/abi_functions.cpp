// The types of all functions of the ABI, fixed for major version 2 (docs/reference/abi.md): a
// function with other arguments is called wrongly without a word. A new function is added here.
#include <type_traits>

#include "plugins/abi.h"

// ---- plugins/abi/common.h
static_assert(std::is_same_v<decltype(tandem_host::explain), void (*)(const char*)>);
static_assert(std::is_same_v<decltype(tandem_host::get_integer),
                             tandem_status (*)(const tandem_attributes*, const char*, int64_t*)>);
static_assert(std::is_same_v<decltype(tandem_host::get_number),
                             tandem_status (*)(const tandem_attributes*, const char*, double*)>);
static_assert(
    std::is_same_v<decltype(tandem_host::get_text),
                   tandem_status (*)(const tandem_attributes*, const char*, const char**)>);
static_assert(std::is_same_v<decltype(tandem_host::get_integers),
                             tandem_status (*)(const tandem_attributes*, const char*,
                                               const int64_t**, uint32_t*)>);
static_assert(std::is_same_v<decltype(tandem_host::is_set),
                             int32_t (*)(const tandem_attributes*, const char*)>);
static_assert(std::is_same_v<decltype(tandem_host::explained), const char* (*)()>);
static_assert(std::is_same_v<decltype(tandem_host::get_numbers),
                             tandem_status (*)(const tandem_attributes*, const char*,
                                               const double**, uint32_t*)>);

// ---- plugins/abi/layers.h
static_assert(std::is_same_v<tandem_pass_function,
                             tandem_status (*)(void*, const tandem_call*, const tandem_pass*)>);
static_assert(
    std::is_same_v<tandem_merge_function, tandem_status (*)(void*, const tandem_call*, float*,
                                                            const float* const*, uint32_t)>);
static_assert(std::is_same_v<decltype(tandem_layer_type::shapes),
                             tandem_status (*)(const tandem_layer_query*, tandem_shape*)>);
static_assert(std::is_same_v<decltype(tandem_layer_type::weights),
                             tandem_status (*)(const tandem_layer_query*, tandem_weight*, uint32_t,
                                               uint32_t, uint32_t*)>);
static_assert(std::is_same_v<decltype(tandem_layer_type::cost),
                             tandem_status (*)(const tandem_layer_query*, tandem_layer_cost*)>);
static_assert(
    std::is_same_v<decltype(tandem_layer_type::statistics),
                   tandem_status (*)(const tandem_layer_query*, tandem_layer_statistics*)>);
static_assert(std::is_same_v<decltype(tandem_layer_type::activation),
                             tandem_status (*)(const tandem_layer_query*, int32_t*)>);
static_assert(std::is_same_v<decltype(tandem_kernel::layouts),
                             tandem_status (*)(const tandem_binding*, tandem_layout_option*,
                                               uint32_t, uint32_t, uint32_t*)>);
static_assert(std::is_same_v<decltype(tandem_kernel::prepare),
                             tandem_status (*)(const tandem_binding*, const tandem_call*, void**,
                                               tandem_kernel_report*)>);
static_assert(std::is_same_v<decltype(tandem_kernel::release), void (*)(void*)>);
static_assert(std::is_same_v<decltype(tandem_kernel::forward), tandem_pass_function>);
static_assert(std::is_same_v<decltype(tandem_kernel::backward_data), tandem_pass_function>);
static_assert(std::is_same_v<decltype(tandem_kernel::backward_weights), tandem_pass_function>);
static_assert(std::is_same_v<decltype(tandem_kernel::backward), tandem_pass_function>);
static_assert(std::is_same_v<decltype(tandem_kernel::forward_statistics), tandem_pass_function>);
static_assert(std::is_same_v<decltype(tandem_kernel::backward_statistics), tandem_pass_function>);
static_assert(
    std::is_same_v<decltype(tandem_kernel::merge_forward_statistics), tandem_merge_function>);

// ---- plugins/abi/datasets.h
static_assert(
    std::is_same_v<decltype(tandem_pack_request::progress), int32_t (*)(void*, int64_t, int64_t)>);
static_assert(std::is_same_v<decltype(tandem_pack_request::left_out),
                             void (*)(void*, const char*, const char*)>);
static_assert(
    std::is_same_v<decltype(tandem_dataset_type::open),
                   tandem_status (*)(const tandem_dataset_request*, void**, tandem_dataset_info*)>);
static_assert(std::is_same_v<decltype(tandem_dataset_type::close), void (*)(void*)>);
static_assert(
    std::is_same_v<decltype(tandem_dataset_type::class_name), const char* (*)(void*, int64_t)>);
static_assert(
    std::is_same_v<decltype(tandem_dataset_type::sample_name), const char* (*)(void*, int64_t)>);
static_assert(std::is_same_v<decltype(tandem_dataset_type::notes), const char* (*)(void*)>);
static_assert(std::is_same_v<decltype(tandem_dataset_type::get),
                             tandem_status (*)(void*, int64_t, uint64_t, float*, float*)>);
static_assert(std::is_same_v<decltype(tandem_dataset_type::get_inputs),
                             tandem_status (*)(void*, int64_t, uint64_t, float* const*)>);
static_assert(std::is_same_v<decltype(tandem_dataset_type::recognizes), int32_t (*)(const char*)>);
static_assert(std::is_same_v<decltype(tandem_dataset_type::label), int64_t (*)(void*, int64_t)>);
static_assert(std::is_same_v<decltype(tandem_dataset_type::describe),
                             tandem_status (*)(void*, int64_t, tandem_sample_info*)>);
static_assert(std::is_same_v<decltype(tandem_dataset_type::pack),
                             tandem_status (*)(const tandem_pack_request*)>);
static_assert(std::is_same_v<decltype(tandem_dataset_type::get_bytes),
                             tandem_status (*)(void*, int64_t, uint64_t, uint8_t*, float*)>);

// ---- plugins/abi/backends.h
static_assert(
    std::is_same_v<decltype(tandem_work::run), tandem_status (*)(void*, const tandem_call*)>);
static_assert(
    std::is_same_v<decltype(tandem_buffers::allocate),
                   tandem_status (*)(tandem_machine*, int32_t, int32_t, int64_t, void**)>);
static_assert(std::is_same_v<decltype(tandem_buffers::free),
                             void (*)(tandem_machine*, int32_t, int32_t, void*)>);
static_assert(std::is_same_v<decltype(tandem_streams::create_stream),
                             tandem_status (*)(tandem_machine*, int32_t, int32_t, const char*,
                                               tandem_stream**)>);
static_assert(std::is_same_v<decltype(tandem_streams::destroy_stream), void (*)(tandem_stream*)>);
static_assert(std::is_same_v<decltype(tandem_streams::create_event),
                             tandem_status (*)(tandem_machine*, tandem_event**)>);
static_assert(std::is_same_v<decltype(tandem_streams::destroy_event), void (*)(tandem_event*)>);
static_assert(std::is_same_v<decltype(tandem_streams::submit),
                             tandem_status (*)(tandem_stream*, const tandem_work*)>);
static_assert(std::is_same_v<decltype(tandem_streams::copy),
                             tandem_status (*)(tandem_stream*, const char*, int32_t, void*, int32_t,
                                               const void*, int64_t)>);
static_assert(std::is_same_v<decltype(tandem_streams::wait),
                             tandem_status (*)(tandem_stream*, tandem_event*)>);
static_assert(std::is_same_v<decltype(tandem_streams::record),
                             tandem_status (*)(tandem_stream*, tandem_event*)>);
static_assert(std::is_same_v<decltype(tandem_streams::synchronize),
                             tandem_status (*)(tandem_event*, double)>);
static_assert(std::is_same_v<decltype(tandem_streams::event_time),
                             tandem_status (*)(tandem_event*, double*)>);
static_assert(std::is_same_v<decltype(tandem_streams::copy_rows),
                             tandem_status (*)(tandem_stream*, const char*, const tandem_rows*)>);
static_assert(std::is_same_v<decltype(tandem_arithmetic::fill),
                             tandem_status (*)(const tandem_call*, float*, float, int64_t)>);
static_assert(std::is_same_v<decltype(tandem_arithmetic::add),
                             tandem_status (*)(const tandem_call*, float*, const float* const*,
                                               uint32_t, int64_t)>);
static_assert(std::is_same_v<decltype(tandem_arithmetic::update),
                             tandem_status (*)(const tandem_call*, const tandem_update*)>);
static_assert(
    std::is_same_v<decltype(tandem_arithmetic::check_finite),
                   tandem_status (*)(const tandem_call*, const float*, int64_t, int32_t*)>);
static_assert(
    std::is_same_v<decltype(tandem_arithmetic::sum_of_squares),
                   tandem_status (*)(const tandem_call*, const float*, int64_t, double*)>);
static_assert(std::is_same_v<decltype(tandem_arithmetic::convert_pixels),
                             tandem_status (*)(const tandem_call*, const tandem_pixels*)>);
static_assert(std::is_same_v<decltype(tandem_links::find_topology),
                             tandem_status (*)(tandem_machine*, const tandem_topology**)>);
static_assert(std::is_same_v<decltype(tandem_capture::begin), tandem_status (*)(tandem_stream*)>);
static_assert(std::is_same_v<decltype(tandem_capture::end),
                             tandem_status (*)(tandem_stream*, tandem_graph**)>);
static_assert(std::is_same_v<decltype(tandem_capture::launch),
                             tandem_status (*)(tandem_stream*, const char*, tandem_graph*)>);
static_assert(std::is_same_v<decltype(tandem_capture::destroy_graph), void (*)(tandem_graph*)>);
static_assert(std::is_same_v<decltype(tandem_backend::count), tandem_status (*)(int32_t*)>);
static_assert(std::is_same_v<decltype(tandem_backend::describe),
                             tandem_status (*)(int32_t, tandem_device_info*)>);
static_assert(std::is_same_v<decltype(tandem_backend::open),
                             tandem_status (*)(const tandem_machine_options*, tandem_machine**)>);
static_assert(std::is_same_v<decltype(tandem_backend::close), void (*)(tandem_machine*)>);
static_assert(std::is_same_v<decltype(tandem_backend::device_info),
                             tandem_status (*)(tandem_machine*, int32_t, tandem_device_info*)>);

// ---- plugins/abi/transports.h
static_assert(
    std::is_same_v<decltype(tandem_transport::open), tandem_status (*)(tandem_communicator**)>);
static_assert(std::is_same_v<decltype(tandem_transport::close), void (*)(tandem_communicator*)>);
static_assert(std::is_same_v<decltype(tandem_transport::rank), int32_t (*)(tandem_communicator*)>);
static_assert(std::is_same_v<decltype(tandem_transport::size), int32_t (*)(tandem_communicator*)>);
static_assert(std::is_same_v<decltype(tandem_transport::send),
                             tandem_status (*)(tandem_communicator*, int32_t, int32_t,
                                               const tandem_part*, uint32_t)>);
static_assert(std::is_same_v<decltype(tandem_transport::receive),
                             tandem_status (*)(tandem_communicator*, int32_t, int32_t,
                                               const tandem_part*, uint32_t)>);
static_assert(std::is_same_v<decltype(tandem_transport::broadcast),
                             tandem_status (*)(tandem_communicator*, int32_t, void*, int64_t)>);
static_assert(std::is_same_v<decltype(tandem_transport::abort), void (*)(tandem_communicator*)>);
static_assert(
    std::is_same_v<decltype(tandem_device_transport::make_key), tandem_status (*)(void*)>);
static_assert(std::is_same_v<decltype(tandem_device_transport::open),
                             tandem_status (*)(const tandem_call*, const void*, int32_t, double,
                                               tandem_device_link**)>);
static_assert(
    std::is_same_v<decltype(tandem_device_transport::transfer),
                   tandem_status (*)(tandem_device_link*, const tandem_call*, void*, int64_t)>);
static_assert(std::is_same_v<decltype(tandem_device_transport::check),
                             tandem_status (*)(tandem_device_link*)>);
static_assert(
    std::is_same_v<decltype(tandem_device_transport::abort), void (*)(tandem_device_link*)>);
static_assert(std::is_same_v<decltype(tandem_device_transport::close),
                             void (*)(tandem_device_link*, double)>);

// ---- plugins/abi.h
static_assert(
    std::is_same_v<tandem_plugin_entry_function, const tandem_plugin* (*)(const tandem_host*)>);
