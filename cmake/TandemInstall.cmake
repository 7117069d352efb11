# What `cmake --install` lays down, in two components:
#   sdk      the headers, find_package(Tandem) with Tandem::sdk and tandem_add_plugin(): all that a layer's
#            author needs; it can be installed before anything is built
#   runtime  the tandem program, libtandem-core (Tandem::tandem), the built-in plugins, the net definitions
# Plugins join by: set_property(GLOBAL APPEND PROPERTY TANDEM_PLUGINS target). Everything finds everything else
# by relative paths, so the prefix may be moved.

include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Tandem)
set(include_folder ${CMAKE_INSTALL_INCLUDEDIR}/tandem)
file(RELATIVE_PATH bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})

# ---- sdk

set_target_properties(tandem_options PROPERTIES EXPORT_NAME sdk)
install(TARGETS tandem_options EXPORT TandemSdk)
install(EXPORT TandemSdk NAMESPACE Tandem:: DESTINATION ${package_folder} COMPONENT sdk)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/core DESTINATION ${include_folder} COMPONENT sdk
  FILES_MATCHING PATTERN "*.h" PATTERN cli EXCLUDE)
install(FILES ${CMAKE_SOURCE_DIR}/plugins/abi.h ${CMAKE_SOURCE_DIR}/plugins/sdk.h
  ${CMAKE_SOURCE_DIR}/plugins/random.h DESTINATION ${include_folder}/plugins COMPONENT sdk)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TandemConfig.cmake.in
  ${CMAKE_BINARY_DIR}/package/TandemConfig.cmake INSTALL_DESTINATION ${package_folder}
  PATH_VARS include_folder CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/TandemConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/package/TandemConfig.cmake ${CMAKE_BINARY_DIR}/package/TandemConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/TandemPlugin.cmake ${CMAKE_CURRENT_LIST_DIR}/plugin.map
  DESTINATION ${package_folder} COMPONENT sdk)

# ---- runtime

set_target_properties(tandem-core PROPERTIES
  EXPORT_NAME tandem INSTALL_RPATH "\$ORIGIN"
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
install(TARGETS tandem-core EXPORT TandemRuntime
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(EXPORT TandemRuntime NAMESPACE Tandem:: DESTINATION ${package_folder} COMPONENT runtime)
if(TARGET tandem)
  set_target_properties(tandem PROPERTIES INSTALL_RPATH "\$ORIGIN/${bin_to_lib}")
  install(TARGETS tandem RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
endif()
get_property(built_in_plugins GLOBAL PROPERTY TANDEM_PLUGINS)
foreach(plugin ${built_in_plugins})
  install(TARGETS ${plugin}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tandem/plugins COMPONENT runtime)
endforeach()
if(EXISTS ${CMAKE_SOURCE_DIR}/examples/models)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/models
    DESTINATION ${CMAKE_INSTALL_DATADIR}/tandem COMPONENT runtime)
endif()
