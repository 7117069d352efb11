# What `cmake --install` lays down, in components (TandemPackages.cmake makes packages of them):
#   sdk          the headers, find_package(Tandem) with Tandem::sdk and tandem_add_plugin(), examples, guides: what the
#                author of a layer needs; it can be installed before anything is built
#   library      libtandem.so.N
#   development  what programs that use the library are built with: Tandem::tandem, tandem.pc
#   runtime      the programs, their completion scripts and manual page, the built-in plugins, the net definitions
#   cuda         the plugins for NVIDIA GPUs
#   mpi          the plugin for several processes
# Plugins join by: set_property(GLOBAL APPEND PROPERTY TANDEM_PLUGINS target). Installed files find
# each other by relative paths, so the prefix may be moved. The target `uninstall` removes them.

include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Tandem)
file(RELATIVE_PATH bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH pkgconfig_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)

# ---- sdk

set_target_properties(tandem_options PROPERTIES EXPORT_NAME sdk)
install(TARGETS tandem_options EXPORT TandemSdk)
install(EXPORT TandemSdk NAMESPACE Tandem:: DESTINATION ${package_folder} COMPONENT sdk)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tandem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT sdk FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_SOURCE_DIR}/plugins/abi.h ${CMAKE_SOURCE_DIR}/plugins/sdk.h
  ${CMAKE_SOURCE_DIR}/plugins/random.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tandem/plugins COMPONENT sdk)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/plugins/abi ${CMAKE_SOURCE_DIR}/plugins/sdk
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tandem/plugins COMPONENT sdk FILES_MATCHING PATTERN "*.h")
# Helpers for kernels. They include other headers by their place in the source tree.
foreach(header
    cpu/bfloat16 cpu/layout cpu/team cpu/vector
    cuda/elements cuda/indexing cuda/launch cuda/status cuda/sums cuda/teams cuda/tensor_groups cuda/tensor_sums
    cuda/vectors)
  set(copy ${CMAKE_BINARY_DIR}/package/plugins/${header}.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plugins/${header}.h)
  file(READ ${CMAKE_SOURCE_DIR}/plugins/${header}.h text)
  string(REPLACE "#include \"plugins/" "#include \"tandem/plugins/" text "${text}")
  file(CONFIGURE OUTPUT ${copy} CONTENT "${text}" @ONLY)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${copy} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tandem/plugins/${folder} COMPONENT sdk)
endforeach()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TandemConfig.cmake.in
  ${CMAKE_BINARY_DIR}/package/TandemConfig.cmake INSTALL_DESTINATION ${package_folder}
  PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/TandemConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/package/TandemConfig.cmake ${CMAKE_BINARY_DIR}/package/TandemConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/TandemPlugin.cmake ${CMAKE_CURRENT_LIST_DIR}/plugin.map
  DESTINATION ${package_folder} COMPONENT sdk)
foreach(example alexnet custom_layer predict_in_c shapes)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/${example}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/tandem/examples COMPONENT sdk PATTERN "*.1" EXCLUDE)
endforeach()
foreach(guide write_a_layer layer_with_weights layers_in_depth fused_layers cuda_kernel write_a_data_set plain_c)
  install(FILES ${CMAKE_SOURCE_DIR}/docs/guide/${guide}.md
    DESTINATION ${CMAKE_INSTALL_DATADIR}/tandem/guides COMPONENT sdk)
endforeach()

# ---- library and development

set_target_properties(tandem-core PROPERTIES EXPORT_NAME tandem)
install(TARGETS tandem-core EXPORT TandemRuntime
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(EXPORT TandemRuntime NAMESPACE Tandem:: DESTINATION ${package_folder} COMPONENT development)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tandem.pc.in ${CMAKE_BINARY_DIR}/package/tandem.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/package/tandem.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# ---- runtime, cuda and mpi

if(TARGET tandem)
  set_target_properties(tandem PROPERTIES INSTALL_RPATH "\$ORIGIN/${bin_to_lib}")
  install(TARGETS tandem RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  # What a shell and `man` look for, printed by the program itself.
  set(completion_folder ${CMAKE_BINARY_DIR}/completion)
  add_custom_command(
    OUTPUT ${completion_folder}/tandem ${completion_folder}/_tandem ${completion_folder}/tandem.fish
      ${completion_folder}/tandem.1
    COMMAND ${CMAKE_COMMAND} -E make_directory ${completion_folder}
    COMMAND $<TARGET_FILE:tandem> completion bash > ${completion_folder}/tandem
    COMMAND $<TARGET_FILE:tandem> completion zsh > ${completion_folder}/_tandem
    COMMAND $<TARGET_FILE:tandem> completion fish > ${completion_folder}/tandem.fish
    COMMAND $<TARGET_FILE:tandem> completion man > ${completion_folder}/tandem.1
    DEPENDS tandem VERBATIM)
  add_custom_target(tandem-completion ALL DEPENDS ${completion_folder}/tandem)
  install(FILES ${completion_folder}/tandem
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
  install(FILES ${completion_folder}/_tandem
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT runtime)
  install(FILES ${completion_folder}/tandem.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT runtime)
  install(FILES ${completion_folder}/tandem.1
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
endif()
foreach(example alexnet shapes)
  if(TARGET tandem-${example})
    install(FILES ${CMAKE_SOURCE_DIR}/examples/${example}/tandem-${example}.1
      DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
  endif()
endforeach()
get_property(built_in_plugins GLOBAL PROPERTY TANDEM_PLUGINS)
foreach(plugin ${built_in_plugins})
  if(plugin MATCHES "_cuda(_|$)")
    set(component cuda)
  elseif(plugin STREQUAL "tandem_transport_mpi")
    set(component mpi)
  else()
    set(component runtime)
  endif()
  install(TARGETS ${plugin}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tandem/plugins COMPONENT ${component})
endforeach()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/models
  DESTINATION ${CMAKE_INSTALL_DATADIR}/tandem COMPONENT runtime)

add_custom_target(uninstall VERBATIM
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_BINARY_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/TandemUninstall.cmake)
