# Files made from the operator table: sources (tools/gen.py) and kernels (tools/build_kernels.py).
# Both write only what changed, so touching the table does not rebuild the world.
#
#   WEFT_GENERATED           folder, an include root; given by the user, it is one that another build has made
#   WEFT_GENERATED_SOURCES   C++ sources with the headers they wait for
#   WEFT_KERNEL_OBJECTS      machine code, a file for each shard of the kernels and instruction set
set(WEFT_GENERATED "" CACHE PATH "Generated files of another build of these sources; empty: make them")
set(WEFT_GENERATED_SOURCES)
set(WEFT_KERNEL_OBJECTS)
if(WEFT_GENERATED)
  file(GLOB WEFT_GENERATED_SOURCES "${WEFT_GENERATED}/*.h" "${WEFT_GENERATED}/*.cpp")
  file(GLOB WEFT_KERNEL_OBJECTS "${WEFT_GENERATED}/kernels/*.o")
  return()
endif()
set(WEFT_GENERATED "${PROJECT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${WEFT_GENERATED}/weft" "${WEFT_GENERATED}/libtorch")

# weft_absolute(VARIABLE NAMES...): the names as paths in the generated folder.
function(weft_absolute variable)
  list(TRANSFORM ARGN PREPEND "${WEFT_GENERATED}/")
  set(${variable} ${ARGN} PARENT_SCOPE)
endfunction()

file(GLOB WEFT_TABLE_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/weft/_ops/*.py"
  "${PROJECT_SOURCE_DIR}/src/weft/_ops/builtins/*.py"
  "${PROJECT_SOURCE_DIR}/src/weft/jit/codegen/instructions.py")
file(GLOB WEFT_TABLE_DOCS CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/weft/_ops/docs/*.txt")
if("generated" IN_LIST WEFT_LAYERS AND EXISTS "${PROJECT_SOURCE_DIR}/tools/gen.py")
  file(GLOB WEFT_GEN_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/gen.py"
    "${PROJECT_SOURCE_DIR}/tools/gen/*.py" "${PROJECT_SOURCE_DIR}/tools/gen/*.txt")
  # A new family of rows is a new file: ask again when the generators or the list of families change.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${WEFT_GEN_SOURCES}
    src/weft/_ops/__init__.py)
  weft_python_output(names tools/gen.py --out "${WEFT_GENERATED}" --list)
  string(REPLACE "\n" ";" names "${names}")
  weft_absolute(outputs ${names})
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND "${Python_EXECUTABLE}" tools/gen.py --out "${WEFT_GENERATED}"
    DEPENDS ${WEFT_GEN_SOURCES} ${WEFT_TABLE_SOURCES} ${WEFT_TABLE_DOCS}
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    COMMENT "Operator table: generated sources" VERBATIM)
  list(FILTER outputs INCLUDE REGEX "\\.(h|cpp)$")
  list(APPEND WEFT_GENERATED_SOURCES ${outputs})
endif()

if("generated" IN_LIST WEFT_LAYERS AND EXISTS "${PROJECT_SOURCE_DIR}/tools/build_kernels.py")
  file(GLOB WEFT_KERNEL_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/build_kernels.py"
    "${PROJECT_SOURCE_DIR}/src/weft/_kernels/*.py")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tools/build_kernels.py
    src/weft/_kernels/aot.py)
  set(isas)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(isas --isa neon)
  endif()
  weft_python_output(names tools/build_kernels.py ${isas} --list-outputs)
  string(REPLACE "\n" ";" names "${names}")
  weft_absolute(outputs ${names})
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND "${Python_EXECUTABLE}" tools/build_kernels.py ${isas} --out "${WEFT_GENERATED}"
    DEPENDS ${WEFT_KERNEL_SOURCES} ${WEFT_TABLE_SOURCES}
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    COMMENT "Kernels: LLVM for every instruction set" VERBATIM)
  set(WEFT_KERNEL_OBJECTS ${outputs})
  list(FILTER WEFT_KERNEL_OBJECTS INCLUDE REGEX "\\.o$")
  set(sources ${outputs})
  list(FILTER sources EXCLUDE REGEX "\\.o$")
  list(APPEND WEFT_GENERATED_SOURCES ${sources})
endif()
add_custom_target(weft_generated DEPENDS ${WEFT_GENERATED_SOURCES})
