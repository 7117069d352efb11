# NVIDIA GPUs: TANDEM_HAS_CUDA is set here, from the option TANDEM_CUDA and from what is installed (the CUDA toolkit,
# 12.8 or newer, with cuBLAS, and cuDNN 9). No GPU and no driver are needed to build, but without a driver nothing would
# use the modules, which take minutes to compile, so by default they are built only where one is.
#
# tandem_add_cuda_kernels(folder): layers/<name>/<name>_cuda.cu, and other *_cuda.cu of the folder, as the module
# tandem_kernels_cuda_<name>. The registry loads it when a cuda device is first asked for.

set(TANDEM_CUDA AUTO CACHE STRING
  "Build for NVIDIA GPUs: AUTO (where a driver and the CUDA toolkit are), TOOLKIT (where the toolkit is), ON or OFF")
set_property(CACHE TANDEM_CUDA PROPERTY STRINGS AUTO TOOLKIT ON OFF)

# What shows that NVIDIA's driver is installed: a device's file (also WSL's) or the driver's library. "" without one.
function(tandem_find_cuda_driver result)
  foreach(device /dev/nvidia0 /dev/nvidiactl /dev/dxg)
    if(EXISTS ${device})
      set(${result} ${device} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  find_file(library libcuda.so.1 NO_CACHE PATHS ENV LD_LIBRARY_PATH /usr/lib /usr/lib64 /usr/local/nvidia /usr/lib/wsl
    PATH_SUFFIXES lib lib64 x86_64-linux-gnu aarch64-linux-gnu x86_64-linux-gnu/nvidia/current
    NO_DEFAULT_PATH)
  if(library)
    set(${result} ${library} PARENT_SCOPE)
  else()
    set(${result} "" PARENT_SCOPE)
  endif()
endfunction()

# Instructions that every GPU since Turing translates when a module is first loaded, and Hopper's own. The preset
# release-all-gpus has the own ones of each, which takes several times as long to build. TOOLKIT only shows that the code
# compiles where no driver is: no code depends on the GPU's generation, and one set of instructions is enough.
set(architectures "75-virtual;90-real")
if(TANDEM_CUDA STREQUAL "TOOLKIT")
  tandem_find_cuda_driver(driver)
  if(NOT driver)
    set(architectures 75-virtual)
  endif()
endif()
set(TANDEM_CUDA_ARCHITECTURES ${architectures} CACHE STRING "CMAKE_CUDA_ARCHITECTURES of Tandem's modules")

function(tandem_find_cuda reason_variable)
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(${reason_variable} "no CUDA compiler (nvcc) was found" PARENT_SCOPE)
    return()
  endif()
  find_package(CUDAToolkit 12.8 QUIET)
  if(NOT TARGET CUDA::cudart OR NOT TARGET CUDA::cublas OR NOT TARGET CUDA::cublasLt)
    set(${reason_variable} "the CUDA toolkit beside ${CMAKE_CUDA_COMPILER} is older than 12.8 or has no cuBLAS"
      PARENT_SCOPE)
    return()
  endif()
  find_path(TANDEM_CUDNN_INCLUDE cudnn_version.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
    PATH_SUFFIXES include x86_64-linux-gnu)
  find_library(TANDEM_CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
  if(NOT TANDEM_CUDNN_INCLUDE OR NOT TANDEM_CUDNN_LIBRARY)
    set(${reason_variable} "cuDNN was not found (cudnn.h and libcudnn.so; TANDEM_CUDNN_INCLUDE and \
TANDEM_CUDNN_LIBRARY say where they are)" PARENT_SCOPE)
    return()
  endif()
  file(STRINGS ${TANDEM_CUDNN_INCLUDE}/cudnn_version.h major REGEX "#define CUDNN_MAJOR [0-9]+")
  string(REGEX REPLACE ".* ([0-9]+).*" "\\1" major "${major}")
  if(NOT major GREATER_EQUAL 9)
    set(${reason_variable} "cuDNN ${major} was found in ${TANDEM_CUDNN_INCLUDE}, but 9 is needed" PARENT_SCOPE)
    return()
  endif()
  set(${reason_variable} "" PARENT_SCOPE)
  set(tandem_cuda_version ${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR} PARENT_SCOPE)  # as packages name it
endfunction()

set(TANDEM_HAS_CUDA FALSE)
set(reason "TANDEM_CUDA is ${TANDEM_CUDA}")  # why there is code for GPUs, or why not
if(TANDEM_SANITIZE)
  set(reason "sanitizers do not know CUDA")
elseif(NOT TANDEM_CUDA MATCHES "^(AUTO|TOOLKIT|ON|OFF)$")
  message(FATAL_ERROR "TANDEM_CUDA is '${TANDEM_CUDA}', but must be AUTO, TOOLKIT, ON or OFF")
elseif(NOT TANDEM_CUDA STREQUAL "OFF")
  set(driver "")
  if(TANDEM_CUDA STREQUAL "AUTO")
    tandem_find_cuda_driver(driver)
    set(reason "no NVIDIA driver was found (TANDEM_CUDA=ON builds without one)")
  endif()
  if(driver OR NOT TANDEM_CUDA STREQUAL "AUTO")
    set(CMAKE_CUDA_ARCHITECTURES ${TANDEM_CUDA_ARCHITECTURES})
    tandem_find_cuda(missing)
    if(NOT missing)
      set(TANDEM_HAS_CUDA TRUE)
      if(driver)
        set(reason "the driver is here: ${driver}")
      endif()
    elseif(TANDEM_CUDA STREQUAL "ON")
      message(FATAL_ERROR "TANDEM_CUDA is ON, but ${missing}")
    else()
      set(reason "${missing}")
    endif()
  endif()
endif()
if(NOT TANDEM_HAS_CUDA)
  message(STATUS "Without NVIDIA GPUs: ${reason}")
  # Modules of an earlier configuration would be loaded.
  file(GLOB stale ${CMAKE_BINARY_DIR}/lib/tandem/plugins/tandem_*_cuda*.so)
  if(stale)
    file(REMOVE ${stale})
  endif()
endif()

if(TANDEM_HAS_CUDA)
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc knows it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  if(TANDEM_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${TANDEM_CCACHE_LAUNCHER})
  endif()
  # What code for GPUs includes and links.
  add_library(tandem_cuda INTERFACE)
  target_include_directories(tandem_cuda SYSTEM INTERFACE ${TANDEM_CUDNN_INCLUDE})
  # Formulas that host and device share use constexpr functions of the standard library.
  target_compile_options(tandem_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  target_link_libraries(tandem_cuda INTERFACE CUDA::cudart CUDA::cublas CUDA::cublasLt ${TANDEM_CUDNN_LIBRARY})
  message(STATUS "With NVIDIA GPUs: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, code for ${TANDEM_CUDA_ARCHITECTURES}; ${reason}")
endif()

function(tandem_add_cuda_kernels folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_cuda.cu)
  if(NOT TANDEM_HAS_CUDA OR NOT sources)
    return()
  endif()
  get_filename_component(name ${folder} NAME)
  tandem_add_plugin(tandem_kernels_cuda_${name} ${sources}
    FOLDER ${CMAKE_BINARY_DIR}/lib/tandem/plugins LIBRARIES tandem_cuda)
  set_property(GLOBAL APPEND PROPERTY TANDEM_PLUGINS tandem_kernels_cuda_${name})
endfunction()
