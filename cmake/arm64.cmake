# CMake's toolchain file for Debian's cross compiler of arm64 (crossbuild-essential-arm64), on a machine of another
# architecture with libraries of arm64 (dpkg --add-architecture arm64). scripts/in-debian RELEASE-arm64 builds so. The build
# runs the program that it has built: by qemu-user, registered with the kernel (Debian: qemu-user-static).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
