# What `cmake --install` lays down. Components: runtime (libraries, command, plugins, ports, bindings), development
# (headers, CMake package, pkg-config, toolkit), bundle (shared objects of others, only in the relocatable archive).
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(export_targets sonde_headers sonde_plugin sonde)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sonde
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

if(TARGET sonde_toolkit)
  list(APPEND export_targets sonde_toolkit)
  set_target_properties(sonde_toolkit PROPERTIES EXPORT_NAME toolkit)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/sdk/toolkit
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sonde COMPONENT development
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endif()
if(TARGET sonde_cli)
  list(APPEND export_targets sonde_cli)
  set_target_properties(sonde_cli PROPERTIES EXPORT_NAME cli)
  sonde_set_install_rpath(sonde_cli ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS ${export_targets} EXPORT SondeTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT SondeTargets
  NAMESPACE Sonde:: DESTINATION ${SONDE_INSTALL_CMAKE_DIR} COMPONENT development)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/SondeConfig.cmake.in
  ${PROJECT_BINARY_DIR}/SondeConfig.cmake
  INSTALL_DESTINATION ${SONDE_INSTALL_CMAKE_DIR}
  PATH_VARS SONDE_INSTALL_PLUGIN_DIR SONDE_INSTALL_PORT_DIR
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may break sources, so it must match; from 1.0 on the major must.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SondeConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY ${compatibility})
install(FILES
  ${PROJECT_BINARY_DIR}/SondeConfig.cmake
  ${PROJECT_BINARY_DIR}/SondeConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/SondePlugin.cmake
  ${CMAKE_CURRENT_LIST_DIR}/sonde_plugin.map
  DESTINATION ${SONDE_INSTALL_CMAKE_DIR} COMPONENT development)

file(RELATIVE_PATH SONDE_PC_UP /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" SONDE_PC_UP "${SONDE_PC_UP}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/sonde.pc.in ${PROJECT_BINARY_DIR}/sonde.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sonde.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

foreach(file README.md CHANGELOG.md LICENSE SECURITY.md)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${file})
    install(FILES ${PROJECT_SOURCE_DIR}/${file}
      DESTINATION ${SONDE_INSTALL_DOC_DIR} COMPONENT runtime)
  endif()
endforeach()
