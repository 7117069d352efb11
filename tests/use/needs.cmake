# Exported ONNX models are run by OpenCV's DNN module, too, which is found by its files, as for the data set image_folder.
find_path(TANDEM_OPENCV_DNN_INCLUDE opencv2/dnn.hpp PATH_SUFFIXES opencv4)
foreach(library opencv_core opencv_dnn)
  find_library(TANDEM_LIBRARY_${library} ${library})
endforeach()
if(TANDEM_OPENCV AND TANDEM_OPENCV_DNN_INCLUDE AND TANDEM_LIBRARY_opencv_core AND TANDEM_LIBRARY_opencv_dnn)
  target_link_libraries(test_use PRIVATE ${TANDEM_LIBRARY_opencv_dnn} ${TANDEM_LIBRARY_opencv_core})
  set_source_files_properties(${CMAKE_SOURCE_DIR}/tests/use/opencv_dnn.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON
    COMPILE_DEFINITIONS TANDEM_TEST_OPENCV_DNN COMPILE_OPTIONS "-isystem;${TANDEM_OPENCV_DNN_INCLUDE}")
else()
  message(STATUS "Tests of exported ONNX models: skipped, without OpenCV's DNN module (Debian: libopencv-dnn-dev)")
endif()
