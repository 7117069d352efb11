# A data set that does what a test tells it to, and what draws image files.
tandem_add_plugin(tandem_dataset_scripted ${CMAKE_CURRENT_LIST_DIR}/plugin/scripted.cpp
  FOLDER ${CMAKE_BINARY_DIR}/lib/tandem/test_plugins/data)
set_property(GLOBAL APPEND PROPERTY TANDEM_TEST_PLUGINS tandem_dataset_scripted)
if(TARGET test_data)
  add_dependencies(test_data tandem_dataset_scripted test_plugin_bad_bytes test_plugin_null_texts tandem_dataset_synthetic
    tandem_dataset_cifar10_binary tandem_dataset_mnist_idx)
  if(TARGET tandem_images)
    target_link_libraries(test_data PRIVATE tandem_images tandem_picture)
    target_compile_definitions(test_data PRIVATE TANDEM_TEST_IMAGES)
    add_dependencies(test_data tandem_dataset_image_folder)
  endif()
endif()
