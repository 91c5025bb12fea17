# weft._C: everything of csrc/bindings as one Python extension module.
weft_python_output(nanobind_ROOT -m nanobind --cmake_dir)
find_package(nanobind CONFIG REQUIRED)

weft_sources(binding_sources "*.cpp" bindings)
list(FILTER binding_sources EXCLUDE REGEX "_test\\.cpp$")
if(NOT binding_sources)
  message(WARNING "csrc/bindings is empty: weft._C is not built")
  return()
endif()

# Interpreters without a lock (csrc/bindings/python.h says from which version on); others know nothing of it.
if(Python_VERSION VERSION_GREATER_EQUAL 3.14)
  set(free_threaded FREE_THREADED)
endif()
nanobind_add_module(weft_python NB_STATIC NB_DOMAIN weft NOMINSIZE ${free_threaded} ${binding_sources})
# Our warnings apply to our sources; nanobind's own are built apart.
target_include_directories(weft_python PRIVATE "${WEFT_GENERATED}")
target_link_libraries(weft_python PRIVATE weft_flags weft)
# Headers made from the table must exist before the bindings compile.
if(TARGET weft_generated)
  add_dependencies(weft_python weft_generated)
endif()
set_target_properties(weft_python PROPERTIES
  OUTPUT_NAME _C
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/weft"
  INSTALL_RPATH "$ORIGIN/lib")
install(TARGETS weft_python LIBRARY DESTINATION weft)
install(DIRECTORY "${WEFT_GENERATED}/weft/" DESTINATION weft FILES_MATCHING PATTERN "*.pyi")
