# The layers and data sets that the readers under test load.
get_property(plugins GLOBAL PROPERTY TANDEM_PLUGINS)
list(FILTER plugins INCLUDE REGEX "^tandem_(layer|dataset)_")
add_dependencies(test_fuzz ${plugins})
# The targets of the data set image_folder, with its sources.
if(TARGET tandem_images)
  file(GLOB image_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/datasets/image_folder/*.cpp
    ${CMAKE_CURRENT_LIST_DIR}/images/*.cpp)
  list(FILTER image_sources EXCLUDE REGEX "/module\\.cpp$")
  target_sources(test_fuzz PRIVATE ${image_sources})
  target_link_libraries(test_fuzz PRIVATE tandem_picture tandem_images)
  target_compile_definitions(test_fuzz PRIVATE TANDEM_TEST_IMAGES)
endif()
