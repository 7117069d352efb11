# stand_in.cpp replaces cuDNN, cuBLASLt and CUDA, so none of them is linked.
target_include_directories(test_cuda_libraries SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ${TANDEM_CUDNN_INCLUDE})
