# Packages: a .deb that depends on Debian's libraries, and a relocatable archive that carries them.
#   cpack --preset release   or   cpack -G TGZ | -G DEB in a build folder
include_guard(GLOBAL)
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# Copies the shared objects of others next to libsonde; `cmake --install --component bundle` after the other
# components, which the archive does by itself (package_options.cmake).
configure_file(${CMAKE_CURRENT_LIST_DIR}/bundle.cmake.in ${PROJECT_BINARY_DIR}/bundle.cmake @ONLY)
install(SCRIPT ${PROJECT_BINARY_DIR}/bundle.cmake COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME sonde)
set(CPACK_PACKAGE_VENDOR "The Sonde developers")
set(CPACK_PACKAGE_CONTACT "The Sonde developers <sonde@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(SONDE_PACKAGE_FILE_NAME sonde-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_FILE_NAME ${SONDE_PACKAGE_FILE_NAME})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_MONOLITHIC_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/package_options.cmake)
include(CPack)
