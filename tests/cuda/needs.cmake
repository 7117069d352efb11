# Code that needs no GPU is compiled in. Code that needs one is loaded as modules, as in every program.
set(cuda ${CMAKE_SOURCE_DIR}/plugins/cuda)
target_sources(test_cuda PRIVATE ${cuda}/capture.cpp ${cuda}/clock.cpp ${cuda}/hardware.cpp ${cuda}/machine.cpp
  ${cuda}/gpu_links.cpp ${cuda}/link_facts.cpp ${cuda}/nvml.cpp ${cuda}/pci.cpp)
target_link_libraries(test_cuda PRIVATE tandem_cuda)
get_property(built_in GLOBAL PROPERTY TANDEM_PLUGINS)
add_dependencies(test_cuda tandem ${built_in})
target_compile_definitions(test_cuda PRIVATE TANDEM_READELF="${CMAKE_READELF}")
