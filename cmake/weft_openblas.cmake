# weft_openblas: OpenBLAS from the scipy-openblas32 wheel. Its symbols start with "scipy_"
# (scipy_cblas_sgemm), so it can live beside any other BLAS of the process. Nothing links it:
# csrc/ops/openblas.h loads it when it is needed.
set(WEFT_OPENBLAS "" CACHE PATH
  "The folder scipy_openblas32 of an unpacked wheel, for a cross build; empty: that of the build's Python")
if(WEFT_OPENBLAS)
  set(WEFT_OPENBLAS_PATHS "${WEFT_OPENBLAS}/include;${WEFT_OPENBLAS}/lib")
else()
  weft_python_output(WEFT_OPENBLAS_PATHS -c
    "import scipy_openblas32 as b\nprint(b.get_include_dir())\nprint(b.get_lib_dir())")
  string(REPLACE "\n" ";" WEFT_OPENBLAS_PATHS "${WEFT_OPENBLAS_PATHS}")
endif()
list(GET WEFT_OPENBLAS_PATHS 0 WEFT_OPENBLAS_INCLUDE)
list(GET WEFT_OPENBLAS_PATHS 1 WEFT_OPENBLAS_LIB)
add_library(weft_openblas INTERFACE)
target_include_directories(weft_openblas SYSTEM INTERFACE "${WEFT_OPENBLAS_INCLUDE}")
