# The real cuDNN, asked for engines of a GPU that is only described: no GPU and no driver are needed.
target_link_libraries(test_cuda_dnn PRIVATE tandem_cuda)
