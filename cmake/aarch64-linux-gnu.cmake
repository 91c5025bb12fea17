# Toolchain: libweft for AArch64 with Linux, built on another machine and tested under QEMU.
#
#   apt-get install g++-aarch64-linux-gnu qemu-user
#   cmake -S . -B arm -G Ninja --toolchain cmake/aarch64-linux-gnu.cmake -DWEFT_PYTHON_EXTENSION=OFF
#     -DWEFT_OPENBLAS=FOLDER        scipy_openblas32 of the unpacked aarch64 wheel; tools/nightly fetches it
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(root /usr/aarch64-linux-gnu)
# The baseline: on QEMU's widest processor OpenBLAS takes kernels for SME, whose complex products are wrong there.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu cortex-a57 -L ${root})
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
