# libweft: core, ops, autograd, runtime, the generated sources and the kernels in one shared library.
#
# Object libraries: core needs nothing generated, so it compiles while the generators run; ops holds
# the loops, and is optimized further than the rest.

# weft_sources(VARIABLE PATTERN FOLDERS...): sources below csrc/, less WEFT_EXCLUDE.
function(weft_sources variable pattern)
  set(found)
  foreach(layer IN LISTS ARGN)
    file(GLOB_RECURSE files RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS
      "${PROJECT_SOURCE_DIR}/csrc/${layer}/${pattern}")
    list(APPEND found ${files})
  endforeach()
  if(WEFT_EXCLUDE)
    list(FILTER found EXCLUDE REGEX "${WEFT_EXCLUDE}")
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

find_package(Threads REQUIRED)
set(upper_layers ${WEFT_LAYERS})
list(REMOVE_ITEM upper_layers core generated)
set(above_ops ${upper_layers})
list(REMOVE_ITEM above_ops ops)
weft_sources(core_sources "*.cpp" core)
weft_sources(ops_sources "*.cpp" ops)
weft_sources(upper_sources "*.cpp" ${above_ops})
foreach(sources core_sources ops_sources upper_sources)
  list(FILTER ${sources} EXCLUDE REGEX "_test\\.cpp$")
endforeach()

add_library(weft_core OBJECT ${core_sources})
target_link_libraries(weft_core PRIVATE weft_flags)

add_library(weft SHARED $<TARGET_OBJECTS:weft_core> ${WEFT_KERNEL_OBJECTS})
if(WEFT_STATIC)
  add_library(weft_static STATIC $<TARGET_OBJECTS:weft_core> ${WEFT_KERNEL_OBJECTS})
  set_target_properties(weft_static PROPERTIES OUTPUT_NAME weft LINKER_LANGUAGE CXX)
  install(TARGETS weft_static ARCHIVE DESTINATION weft/lib)
  add_dependencies(weft weft_static)  # a wheel builds targets by name, this one with libweft
endif()

# weft_objects(NAME SOURCES...): a part of libweft that includes generated headers.
function(weft_objects name)
  if(NOT ARGN)
    return()
  endif()
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE "${WEFT_GENERATED}")
  target_link_libraries(${name} PRIVATE weft_flags weft_openblas)
  target_precompile_headers(${name} PRIVATE
    <functional> <memory> <optional> <sstream> <string> <tuple> <vector>
    "${PROJECT_SOURCE_DIR}/csrc/core/tensor.h")
  if(TARGET weft_generated)
    add_dependencies(${name} weft_generated)
  endif()
  target_sources(weft PRIVATE $<TARGET_OBJECTS:${name}>)
  if(WEFT_STATIC)
    target_sources(weft_static PRIVATE $<TARGET_OBJECTS:${name}>)
  endif()
endfunction()
weft_objects(weft_ops ${ops_sources})
weft_objects(weft_upper ${upper_sources} ${WEFT_GENERATED_SOURCES})
if(TARGET weft_ops AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT WEFT_SANITIZE)
  # Nobody reads the processor's flags: loops with comparisons and floor have vectors.
  target_compile_options(weft_ops PRIVATE -O3 -fno-math-errno -fno-trapping-math)
endif()
if(TARGET weft_ops AND WEFT_SANITIZE STREQUAL "ON")
  # Locals of inlined kernels are many, and their scopes a third of the compiler's time.
  target_compile_options(weft_ops PRIVATE -fno-sanitize-address-use-after-scope)
endif()
set_source_files_properties(${WEFT_KERNEL_OBJECTS} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)

target_include_directories(weft PUBLIC "${WEFT_GENERATED}")
target_link_libraries(weft PUBLIC weft_flags PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(weft PROPERTIES
  LINKER_LANGUAGE CXX
  BUILD_RPATH "${WEFT_OPENBLAS_LIB}"
  INSTALL_RPATH "$ORIGIN/../../scipy_openblas32/lib")
install(TARGETS weft LIBRARY DESTINATION weft/lib)
if(WEFT_SANITIZE)
  # The sanitizers' dlopen does not search the path of the library that calls it.
  target_link_options(weft PRIVATE -Wl,--no-as-needed "${WEFT_OPENBLAS_LIB}/libscipy_openblas.so")
endif()

# A declared function that nobody defines is an error of the link, not of the first call. (Not when
# layers are left out; the sanitizers' own symbols come from the program.)
if(WEFT_KERNEL_OBJECTS AND NOT WEFT_EXCLUDE AND NOT WEFT_SANITIZE)
  target_link_options(weft PRIVATE -Wl,-z,defs)
endif()
