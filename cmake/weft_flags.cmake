# weft_flags: the compile and link options of all our C++ code, as an interface target.
add_library(weft_flags INTERFACE)
target_include_directories(weft_flags INTERFACE "${PROJECT_SOURCE_DIR}/csrc")
target_compile_options(weft_flags INTERFACE -Wall -Wextra)
if(WEFT_WERROR)
  target_compile_options(weft_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of GCC 12 on inlined small buffers at -O3.
  target_compile_options(weft_flags INTERFACE -Wno-array-bounds -Wno-stringop-overflow
    -Wno-maybe-uninitialized -Wno-restrict)
endif()

# Where the linker finds only the static C++ library, its symbols are not the process's: another version of it, which came
# with NumPy, would share the ids of its locales with ours, and messages with numbers in them ended or crashed.
target_link_options(weft_flags INTERFACE -Wl,--exclude-libs,libstdc++.a)

if(WEFT_SANITIZE)
  # ThreadSanitizer excludes the others. It must see the calls that it intercepts.
  if(WEFT_SANITIZE STREQUAL "thread")
    set(sanitizers thread)
  else()
    set(sanitizers address,undefined)
    # A null pointer that is used ends the process by itself; the check costs a sixth of the build.
    # Sizes of objects are unknown to a compiler that does not optimize.
    set(unchecked -fno-sanitize=null,object-size)
    # Undefined behaviour is a trap, whose place the address sanitizer reports (handle_sigill): code for reports of its
    # own is half of the build.
    list(APPEND unchecked -fsanitize-undefined-trap-on-error)
  endif()
  # Without optimization no access is merged away before its check, and the build takes half the time.
  # The tests' own loops over all elements would take longer.
  target_compile_options(weft_flags INTERFACE -O$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE> -g1 -fno-omit-frame-pointer
    -fsanitize=${sanitizers} ${unchecked} -fno-sanitize-recover=all)
  target_link_options(weft_flags INTERFACE -fsanitize=${sanitizers})
  target_compile_definitions(weft_flags INTERFACE WEFT_SANITIZE=1)
else()
  # Calls inside the library are direct; thread-local variables are one instruction away. The price
  # of initial-exec: a library loaded late has few bytes of thread-local storage, so keep them small.
  target_compile_options(weft_flags INTERFACE
    -fno-semantic-interposition -fno-plt -ftls-model=initial-exec
    -ffunction-sections -fdata-sections)
  target_link_options(weft_flags INTERFACE -Wl,-Bsymbolic-functions -Wl,--gc-sections -Wl,-O1)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_options(weft_flags INTERFACE -march=x86-64-v2)
endif()
