# Builds a plugin: one shared object that shows exactly one symbol, sonde_plugin_entry, and its manifest beside it.
#
#   sonde_add_plugin(NAME [PORT] SOURCES file... [LIBS target...] [MANIFEST file] [NO_INSTALL])
#
# makes the target sonde_plugin_NAME with output NAME.so, and NAME.yaml from the binary by `sonde manifest`. With PORT
# it is a port: target sonde_port_NAME, placed with the ports. MANIFEST gives a manifest written by hand instead, for
# example when the binary cannot run on the build machine. LIBS are linked privately.
#
# The same file serves Sonde's own plugins and, installed, those of others. A project of others that sets
# SONDE_PLUGIN_INSTALL_DIR gets its plugins and manifests installed there.
include_guard(GLOBAL)

set(SONDE_PLUGIN_VERSION_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/sonde_plugin.map
  CACHE INTERNAL "Version script that shows sonde_plugin_entry only")

# In Sonde's own tree the target is made here; installed, it comes from SondeTargets.cmake.
if(NOT TARGET Sonde::plugin)
  add_library(sonde_plugin INTERFACE)
  add_library(Sonde::plugin ALIAS sonde_plugin)
  set_target_properties(sonde_plugin PROPERTIES EXPORT_NAME plugin)
  target_link_libraries(sonde_plugin INTERFACE sonde_headers)
  target_compile_options(sonde_plugin INTERFACE
    -fvisibility=hidden
    $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>
    # A unique symbol would keep the module mapped for ever and merge state between modules.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  target_link_options(sonde_plugin INTERFACE
    -Wl,--exclude-libs,ALL
    -Wl,--version-script=$<BUILD_INTERFACE:${CMAKE_CURRENT_LIST_DIR}/sonde_plugin.map>$<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${SONDE_INSTALL_CMAKE_DIR}/sonde_plugin.map>)
  if(NOT (SONDE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang"))
    # Clang links its sanitizer runtime into executables only, so a module has undefined symbols there.
    target_link_options(sonde_plugin INTERFACE -Wl,-z,defs)
  endif()
endif()

function(sonde_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PORT;NO_INSTALL" "MANIFEST" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sonde_add_plugin(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "sonde_add_plugin(${name}): SOURCES is empty")
  endif()

  set(kind plugin)
  if(arg_PORT)
    set(kind port)
  endif()
  string(TOUPPER ${kind} kind_upper)
  set(target sonde_${kind}_${name})

  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE Sonde::plugin ${arg_LIBS})
  set(output ${CMAKE_CURRENT_BINARY_DIR})
  if(SONDE_${kind_upper}_OUTPUT_DIRECTORY)
    set(output ${SONDE_${kind_upper}_OUTPUT_DIRECTORY})
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX ""
    OUTPUT_NAME ${name}
    SUFFIX ".so"
    LIBRARY_OUTPUT_DIRECTORY ${output}
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    LINK_DEPENDS ${SONDE_PLUGIN_VERSION_SCRIPT})

  # The manifest: what `sonde list` reads instead of opening the binary.
  set(manifest ${output}/${name}.yaml)
  set(command_line "")
  if(TARGET sonde_cli)
    set(command_line sonde_cli)
  elseif(TARGET Sonde::cli)
    set(command_line Sonde::cli)
  endif()
  if(arg_MANIFEST)
    cmake_path(ABSOLUTE_PATH arg_MANIFEST BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    add_custom_command(OUTPUT ${manifest}
      COMMAND ${CMAKE_COMMAND} -E copy ${arg_MANIFEST} ${manifest}
      DEPENDS ${arg_MANIFEST}
      VERBATIM)
  elseif(command_line)
    add_custom_command(OUTPUT ${manifest}
      COMMAND ${command_line} manifest $<TARGET_FILE:${target}> -o ${manifest}
      DEPENDS ${target}
      COMMENT "Writing the manifest ${name}.yaml"
      VERBATIM)
  else()
    message(STATUS "Sonde: no `sonde` command to write the manifest of ${name}")
    set(manifest "")
  endif()
  if(manifest)
    add_custom_target(${target}_manifest ALL DEPENDS ${manifest})
  endif()

  set(install_folder "")
  if(SONDE_INSTALL_${kind_upper}_DIR)
    set(install_folder ${SONDE_INSTALL_${kind_upper}_DIR})
    sonde_set_install_rpath(${target} ${install_folder})
  elseif(SONDE_PLUGIN_INSTALL_DIR)
    set(install_folder ${SONDE_PLUGIN_INSTALL_DIR})
  endif()
  if(install_folder AND NOT arg_NO_INSTALL)
    install(TARGETS ${target} LIBRARY DESTINATION ${install_folder} COMPONENT runtime)
    if(manifest)
      install(FILES ${manifest} DESTINATION ${install_folder} COMPONENT runtime)
    endif()
  endif()
endfunction()
