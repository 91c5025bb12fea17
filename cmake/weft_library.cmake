# libweft: core, ops, autograd, runtime, the generated sources and the kernels in one shared library.
#
# Two object libraries, so that core (which needs nothing generated) compiles while the generators run.

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
weft_sources(core_sources "*.cpp" core)
weft_sources(upper_sources "*.cpp" ${upper_layers})
list(FILTER core_sources EXCLUDE REGEX "_test\\.cpp$")
list(FILTER upper_sources EXCLUDE REGEX "_test\\.cpp$")

add_library(weft_core OBJECT ${core_sources})
target_link_libraries(weft_core PRIVATE weft_flags)

add_library(weft SHARED $<TARGET_OBJECTS:weft_core> ${WEFT_KERNEL_OBJECTS})
if(upper_sources OR WEFT_GENERATED_SOURCES)
  add_library(weft_upper OBJECT ${upper_sources} ${WEFT_GENERATED_SOURCES})
  target_include_directories(weft_upper PRIVATE "${WEFT_GENERATED}")
  target_link_libraries(weft_upper PRIVATE weft_flags weft_openblas)
  target_precompile_headers(weft_upper PRIVATE
    <functional> <memory> <optional> <sstream> <string> <tuple> <vector>
    "${PROJECT_SOURCE_DIR}/csrc/core/tensor.h")
  target_sources(weft PRIVATE $<TARGET_OBJECTS:weft_upper>)
endif()
set_source_files_properties(${WEFT_KERNEL_OBJECTS} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)

target_include_directories(weft PUBLIC "${WEFT_GENERATED}")
target_link_libraries(weft PUBLIC weft_flags PRIVATE weft_openblas Threads::Threads)
set_target_properties(weft PROPERTIES
  LINKER_LANGUAGE CXX
  BUILD_RPATH "${WEFT_OPENBLAS_LIB}"
  INSTALL_RPATH "$ORIGIN/../../scipy_openblas32/lib")
install(TARGETS weft LIBRARY DESTINATION weft/lib)

# A declared function that nobody defines is an error of the link, not of the first call. (Not when
# layers are left out; the sanitizers' own symbols come from the program.)
if(WEFT_KERNEL_OBJECTS AND NOT WEFT_EXCLUDE AND NOT WEFT_SANITIZE)
  target_link_options(weft PRIVATE -Wl,-z,defs)
endif()
