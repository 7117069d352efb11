# cuDNN, cuBLASLt and CUDA are stand_in.cpp, so nothing of them is linked.
target_include_directories(test_cuda_libraries SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ${TANDEM_CUDNN_INCLUDE})
