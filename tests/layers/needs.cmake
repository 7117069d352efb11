# Layers are tested as loaded modules.
get_property(modules GLOBAL PROPERTY TANDEM_PLUGINS)
list(FILTER modules INCLUDE REGEX "^tandem_layer_")
add_dependencies(test_layers ${modules})

# All tests run again on the kernels for GPUs, except those of cpu kernels, whose names end in OnACpu.
get_property(on_host GLOBAL PROPERTY TANDEM_CUDA_ON_HOST)
add_dependencies(test_layers ${on_host})
add_test(NAME LayersOnCudaOnHost COMMAND test_layers --gtest_filter=-*OnACpu:Winograd.*:MaxPooling.*)
set_tests_properties(LayersOnCudaOnHost PROPERTIES ENVIRONMENT TANDEM_TEST_KERNELS=cuda_on_host TIMEOUT 1800 COST 500
  LABELS layers)
# Vectors begin at multiples of 16 bytes.
add_test(NAME LayersOnCudaOnHostUnaligned COMMAND test_layers --gtest_filter=-*OnACpu:Winograd.*:MaxPooling.*)
set_tests_properties(LayersOnCudaOnHostUnaligned PROPERTIES
  ENVIRONMENT "TANDEM_TEST_KERNELS=cuda_on_host;TANDEM_TEST_OFFSET=8" TIMEOUT 1800 COST 500 LABELS layers)
# Kernels of fewer instructions than this CPU has: our own by Highway, and what oneDNN chooses.
function(test_layers_with instructions)
  list(JOIN ARGN : filter)
  add_test(NAME LayersWith${instructions} COMMAND test_layers --gtest_filter=${filter})
  set_tests_properties(LayersWith${instructions} PROPERTIES ENVIRONMENT ONEDNN_MAX_CPU_ISA=${instructions} TIMEOUT 1800
    LABELS layers)
endfunction()
foreach(instructions SSE41 AVX2)
  test_layers_with(${instructions} Winograd.* Convolution.* MaxPooling.* Pooling.* *OfPooling* BatchNormScale.*
    Depthwise.* PixelConvolution.* TapGradient.* InputGradient.* DilatedConvolution.* *FusedRelu* *FusedSum*)
endforeach()
foreach(instructions AVX512_CORE AVX512_CORE_BF16)  # bfloat16 without and with instructions for it, and without AMX
  test_layers_with(${instructions} WinogradBfloat16.* *SixteenBit* *FoldedInputs* *FusedRelu* *FusedSum*)
endforeach()
if(TANDEM_HAS_CUDA)
  target_compile_definitions(test_layers PRIVATE TANDEM_HAS_CUDA)
  add_test(NAME LayersOnCuda COMMAND test_layers --gtest_filter=-*OnACpu:Winograd.*:MaxPooling.*)
  set_tests_properties(LayersOnCuda PROPERTIES ENVIRONMENT TANDEM_TEST_KERNELS=cuda TIMEOUT 600 LABELS layers
    SKIP_REGULAR_EXPRESSION "kernel_device.cpp:[0-9]+: Skipped")
endif()
