# The Python that runs the generators (and, for the extension, whose headers we compile against).
# A virtual environment that is active wins.
set(Python_FIND_VIRTUALENV FIRST)
if(WEFT_PYTHON_EXTENSION)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
else()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
endif()

# weft_python_output(VARIABLE ARGUMENTS...) runs the interpreter at configure time.
function(weft_python_output variable)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" ${ARGN}
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${Python_EXECUTABLE} ${ARGN} failed:\n${errors}")
  endif()
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()
