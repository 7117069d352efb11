# `cpack` makes packages of what is installed: Debian's tandem, libtandem0, libtandem-dev and, where these modules were
# built, tandem-cuda and tandem-mpi. scripts/packages calls it.
# Debian's packages need CMAKE_INSTALL_PREFIX=/usr (preset packages), so that libraries lie where Debian has them.

set(TANDEM_PACKAGE_MAINTAINER "Tandem maintainers <tandem@packages.invalid>" CACHE STRING
  "Maintainer of the Debian packages: NAME <ADDRESS>")

# The release of Debian is a part of the version: each has packages of its own, which follow each other in an upgrade.
set(distribution unstable)
set(revision 1)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release lines REGEX "^(ID|VERSION_ID|VERSION_CODENAME)=")
  if(lines MATCHES "(^|;)ID=debian" AND lines MATCHES "VERSION_ID=\"?([0-9]+)")
    set(revision "1~deb${CMAKE_MATCH_1}")
    if(lines MATCHES "VERSION_CODENAME=([a-z]+)")
      set(distribution ${CMAKE_MATCH_1})
    endif()
  endif()
endif()
set(version ${PROJECT_VERSION}-${revision})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tandem)
set(CPACK_PACKAGE_VENDOR Tandem)
set(CPACK_PACKAGE_CONTACT ${TANDEM_PACKAGE_MAINTAINER})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_TANDEM_STRIP ${CMAKE_STRIP})
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)

# Components, one package for each; sdk and development are one.
set(CPACK_COMPONENTS_ALL runtime library sdk development)
if(TANDEM_HAS_CUDA)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
if(TARGET tandem_transport_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_SDK_GROUP dev)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_NAME tandem)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# The library, which another package contains, is found in the build folder.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(about "Tandem trains convolutional networks on one or more devices of a machine. The\n\
gradients travel between the devices while others are still being computed.\n.\n")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME tandem)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libtandem0 (= ${version})")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "libtandem-dev")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "trainer for convolutional networks\n${about}\
This package contains the programs, the layers and data sets, and the\ndefinitions of some well-known nets.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libtandem0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/package/triggers ${CMAKE_BINARY_DIR}/package/shlibs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "tandem (= ${version}), libcurl4 | libcurl4t64 | libcurl3-gnutls")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "trainer for convolutional networks (library)\n${about}\
This package contains the shared library. Layers, data sets and nets are in\nthe package tandem.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtandem-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libtandem0 (= ${version})")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "tandem, cmake, g++, pkgconf")
set(CPACK_DEBIAN_DEV_DESCRIPTION "trainer for convolutional networks (development files)\n${about}\
This package contains what programs that use the library and plugins with\nlayers of your own are built with: \
the headers, CMake and pkg-config files,\nexamples and guides.")

# CUDA's libraries come from NVIDIA's archive, and are not needed to install the modules: `tandem plugins` names a
# module that does not load, and the reason.
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME tandem-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_SECTION contrib/science)
set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "tandem (= ${version})")
if(TANDEM_HAS_CUDA)
  string(REGEX MATCH "^[0-9]+" major ${tandem_cuda_version})
  set(CPACK_DEBIAN_CUDA_PACKAGE_SUGGESTS
    "cuda-cudart-${tandem_cuda_version}, libcublas-${tandem_cuda_version}, libcudnn9-cuda-${major}, libnccl2")
endif()
set(CPACK_DEBIAN_CUDA_DESCRIPTION "trainer for convolutional networks (NVIDIA GPUs)\n${about}\
This package contains the modules for NVIDIA GPUs. To use them, install the\ndriver, CUDA's libraries and cuDNN 9; with NCCL, GPUs of several ranks exchange\nmessages directly.")

set(CPACK_DEBIAN_MPI_PACKAGE_NAME tandem-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "tandem (= ${version})")
set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS "openmpi-bin")
set(CPACK_DEBIAN_MPI_DESCRIPTION "trainer for convolutional networks (several processes)\n${about}\
This package contains the module for training by several processes, on one or\nmore hosts, which mpirun starts.")

# What Debian wants of each package besides: TandemDebianFiles.cmake adds it to what is installed.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/TandemDebianFiles.cmake)
set(CPACK_TANDEM_DISTRIBUTION ${distribution})
set(CPACK_TANDEM_VERSION ${version})
set(CPACK_TANDEM_CHANGELOG ${CMAKE_SOURCE_DIR}/CHANGELOG.md)
file(WRITE ${CMAKE_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
file(WRITE ${CMAKE_BINARY_DIR}/package/shlibs "libtandem 0 libtandem0 (>= ${PROJECT_VERSION})\n")
include(CPack)
