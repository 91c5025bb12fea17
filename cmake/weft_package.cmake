# What C and C++ programs are built with: headers, find_package(weft), pkg-config's file. They are
# installed beside the library in the Python package; `python -m weft --cmake-prefix` names the place.
install(FILES "${PROJECT_SOURCE_DIR}/csrc/capi/weft.h" "${PROJECT_SOURCE_DIR}/csrc/capi/weft.hpp"
  DESTINATION weft/include)
configure_file("${PROJECT_SOURCE_DIR}/cmake/weft-config.cmake.in"
  "${PROJECT_BINARY_DIR}/weft-config.cmake" @ONLY)
configure_file("${PROJECT_SOURCE_DIR}/cmake/weft.pc.in" "${PROJECT_BINARY_DIR}/weft.pc" @ONLY)
if(WEFT_STATIC)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/weft-static.pc.in"
    "${PROJECT_BINARY_DIR}/weft-static.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/weft-static.pc" DESTINATION weft/lib/pkgconfig)
endif()
install(FILES "${PROJECT_BINARY_DIR}/weft-config.cmake" DESTINATION weft/lib/cmake/weft)
install(FILES "${PROJECT_BINARY_DIR}/weft.pc" DESTINATION weft/lib/pkgconfig)
