# composed.weft, beside libweft: what weft composes in Python, as operators for hosts without Python
# (tools/compose.py). The extension that was built compiles it; a build without one, or for another
# machine, has not the file: libweft then says so where a host asks for such an operator. That of
# another machine serves.
if(CMAKE_CROSSCOMPILING)
  return()
endif()
set(WEFT_COMPOSED "${PROJECT_BINARY_DIR}/composed.weft")
file(GLOB_RECURSE WEFT_PYTHON_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/weft/*.py")
add_custom_command(
  OUTPUT "${WEFT_COMPOSED}"
  COMMAND "${CMAKE_COMMAND}" -E env PYTHONDONTWRITEBYTECODE=1 "${Python_EXECUTABLE}" tools/compose.py
    --extension "$<TARGET_FILE_DIR:weft_python>" --out "${WEFT_COMPOSED}"
  DEPENDS weft_python tools/compose.py tools/gen/composed.py tools/gen/composed.txt
    ${WEFT_PYTHON_SOURCES}
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  COMMENT "Operators composed in Python" VERBATIM)
add_custom_target(weft_composed ALL DEPENDS "${WEFT_COMPOSED}")
install(FILES "${WEFT_COMPOSED}" DESTINATION weft/lib)
