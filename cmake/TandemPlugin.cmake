# tandem_add_plugin(NAME SOURCES... [ABI 2.0] [LAYERS 2.0] [DATASETS 2.0] [BACKENDS 2.0] [TRANSPORTS 2.0]
#   [LIBRARIES ...] [FOLDER dir])
# Builds a Tandem plugin: a module NAME.so with one exported symbol, tandem_plugin_entry. It has hidden visibility
# and a version script, since either alone exports C++ symbols that two plugins would then share, and no undefined
# symbols, so that a missing library is an error now and not when the plugin is loaded. C++ and CUDA sources are
# compiled as C++20; a project with CUDA sources enables the language (project(... LANGUAGES CXX CUDA)).
#
# ABI: the version of the plugin ABI that the sources were written for. Headers of another major version, or of an
# older minor, are an error that says so, in place of what the compiler would say. LAYERS and so on: the same for the
# parts of the ABI. Tandem_ABI_VERSION, Tandem_LAYERS_VERSION and so on are those of the headers here.
# LIBRARIES: what the plugin links besides. FOLDER: where NAME.so is built; default: CMake's.
# Tandem's own plugins are installed by: set_property(GLOBAL APPEND PROPERTY TANDEM_PLUGINS NAME).

set(TANDEM_PLUGIN_VERSION_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/plugin.map)
if(NOT DEFINED Tandem_ABI_VERSION)  # in Tandem's own tree; an installed TandemConfig.cmake has them
  foreach(part ABI LAYERS DATASETS BACKENDS TRANSPORTS)
    string(TOLOWER ${part} header)
    set(header ${CMAKE_CURRENT_LIST_DIR}/../plugins/abi/${header}.h)
    if(part STREQUAL "ABI")
      set(header ${CMAKE_CURRENT_LIST_DIR}/../plugins/abi.h)
    endif()
    file(STRINGS ${header} numbers REGEX "^#define TANDEM_${part}_(MAJOR|MINOR) ")
    string(REGEX REPLACE "[^0-9;]" "" numbers "${numbers}")
    list(JOIN numbers "." Tandem_${part}_VERSION)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  endforeach()
endif()
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc knows it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()

function(tandem_add_plugin name)
  cmake_parse_arguments(ARG "" "FOLDER;ABI;LAYERS;DATASETS;BACKENDS;TRANSPORTS" "LIBRARIES" ${ARGN})
  foreach(part ABI LAYERS DATASETS BACKENDS TRANSPORTS)
    if(ARG_${part})
      set(what "plugin ABI")
      if(NOT part STREQUAL "ABI")
        set(what "${part} of the plugin ABI")
      endif()
      string(REGEX REPLACE "[.].*" "" its_major ${ARG_${part}})
      string(REGEX REPLACE "[.].*" "" our_major ${Tandem_${part}_VERSION})
      if(NOT its_major EQUAL our_major OR ARG_${part} VERSION_GREATER Tandem_${part}_VERSION)
        message(FATAL_ERROR "tandem_add_plugin(${name}): its sources are for ${what} ${ARG_${part}}, and this Tandem has "
          "${Tandem_${part}_VERSION}: use a Tandem with ${part} ${ARG_${part}}, or adapt the sources and say ${part} "
          "${Tandem_${part}_VERSION}")
      endif()
    endif()
  endforeach()
  add_library(${name} MODULE ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so" CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${TANDEM_PLUGIN_VERSION_SCRIPT})
  # A module of Tandem's own finds its libraries where the loader does. That of another project finds them where it was
  # linked with them, too. Otherwise CMake adds an empty entry to the path, by which the loader searches the current folder.
  set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  if(NOT DEFINED CMAKE_INSTALL_RPATH_USE_LINK_PATH)
    set_target_properties(${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
  target_compile_features(${name} PRIVATE cxx_std_20)
  # Formulas that host and device share use constexpr functions of the standard library.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  target_link_options(${name} PRIVATE -Wl,--version-script=${TANDEM_PLUGIN_VERSION_SCRIPT})
  if(NOT TANDEM_SANITIZE)  # the sanitizers' run-time library is the program's
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()
  # The folder that runs on any Linux has a standard library of its own, which may be older than this compiler's.
  if(DEFINED Tandem_plugin_folder AND EXISTS ${Tandem_plugin_folder}/../libraries)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  target_link_libraries(${name} PRIVATE Tandem::sdk ${ARG_LIBRARIES})
  if(ARG_FOLDER)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ARG_FOLDER})
  endif()
endfunction()
