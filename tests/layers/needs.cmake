# Layers are tested as loaded modules.
get_property(modules GLOBAL PROPERTY TANDEM_PLUGINS)
list(FILTER modules INCLUDE REGEX "^tandem_layer_")
add_dependencies(test_layers ${modules})

# Without a backend, idle threads of OpenMP's teams would spin (plugins/cpu/team.cpp).
set(environment OMP_WAIT_POLICY=PASSIVE)
# All tests run again on the kernels for GPUs, except those of cpu kernels, whose names end in OnACpu.
get_property(on_host GLOBAL PROPERTY TANDEM_CUDA_ON_HOST)
add_dependencies(test_layers ${on_host})
set(on_gpus *-*OnACpu:Winograd.*:MaxPooling.*)
function(test_layers_on name)
  tandem_shared_test(${name} test_layers FILTER ${on_gpus} ENVIRONMENT ${environment} ${ARGN} PROPERTIES LABELS layers)
endfunction()
test_layers_on(LayersOnCudaOnHost TANDEM_TEST_KERNELS=cuda_on_host)
# Vectors begin at multiples of 16 bytes.
test_layers_on(LayersOnCudaOnHostUnaligned TANDEM_TEST_KERNELS=cuda_on_host TANDEM_TEST_OFFSET=8)
# Kernels of fewer instructions than this CPU has: our own by Highway, and what oneDNN chooses. A CPU without AVX-512 runs
# those of AVX2 anyway.
set(less SSE41)
set(less_than_all "")
set(flags avx512)
if(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
endif()
if(flags MATCHES avx512)
  list(APPEND less AVX2)
  set(less_than_all AVX512_CORE AVX512_CORE_BF16)  # bfloat16 without and with instructions for it, and without AMX
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(less "")
  set(less_than_all "")
endif()
function(test_layers_with instructions)
  list(JOIN ARGN : filter)
  tandem_shared_test(LayersWith${instructions} test_layers FILTER ${filter} PROPERTIES LABELS layers
    ENVIRONMENT ${environment} ONEDNN_MAX_CPU_ISA=${instructions})
endfunction()
foreach(instructions ${less})
  test_layers_with(${instructions} Winograd.* Convolution.* MaxPooling.* Pooling.* *OfPooling* BatchNormScale.*
    Depthwise.* PixelConvolution.* TapGradient.* InputGradient.* DilatedConvolution.* *FusedRelu* *FusedSum*
    *Elementwise* Eltwise.* LayerNorm.* Bias.* Scale.* BroadcastValues.*)
endforeach()
foreach(instructions ${less_than_all})
  test_layers_with(${instructions} WinogradBfloat16.* *SixteenBit* *FoldedInputs* *FusedRelu* *FusedSum*)
endforeach()
# What a CPU computes with for which oneDNN has only reference code: with the widest vectors, and with four floats as NEON's.
set(own OwnKernels.* Convolution.* Deconvolution.* PixelConvolution.* MatMul.* InnerProduct.* Softmax.* Pooling.*
  Gradients.* Nan.* Bits.* WeightGradients.* FusedRelu* */FusedRelu* Sliced* Depthwise.* *Vectors* InnerProductWithItsBias.*)
list(JOIN own : own)
set(caps)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64") # elsewhere all tests run so
  set(caps "" ONEDNN_MAX_CPU_ISA=SSE41)
endif()
foreach(cap IN LISTS caps)
  string(REPLACE ONEDNN_MAX_CPU_ISA= On suffix "${cap}")
  tandem_shared_test(LayersWithOwnKernels${suffix} test_layers FILTER ${own} PROPERTIES LABELS layers
    ENVIRONMENT ${environment} TANDEM_CPU_KERNELS=own ${cap})
endforeach()
if(TANDEM_HAS_CUDA)
  target_compile_definitions(test_layers PRIVATE TANDEM_HAS_CUDA)
  test_layers_on(LayersOnCuda TANDEM_TEST_KERNELS=cuda)
  set_tests_properties(LayersOnCuda PROPERTIES SKIP_REGULAR_EXPRESSION "kernel_device.cpp:[0-9]+: Skipped")
endif()
