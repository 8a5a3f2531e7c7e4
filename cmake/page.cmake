# The HTML report's page: web/ and uPlot from npm, joined into one file that the report room carries. The page of
# `muster run --ui`: joined from the same sources, carried by the cli room.
foreach(program node npm)
  find_program(MUSTER_${program} ${program})
  if(NOT MUSTER_${program})
    message(FATAL_ERROR "The HTML report's page is made with node and npm, and ${program} is not installed: "
                        "apt-get install nodejs npm (`make build` does it)")
  endif()
endforeach()

file(GLOB page_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/web/*.js ${CMAKE_CURRENT_SOURCE_DIR}/web/*.mjs
     ${CMAKE_CURRENT_SOURCE_DIR}/web/page.* ${CMAKE_CURRENT_SOURCE_DIR}/web/live.* ${CMAKE_CURRENT_SOURCE_DIR}/web/package-lock.json)
add_custom_command(
  OUTPUT ${generated}/page.html ${generated}/live.html
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/scripts/npm-install web
  COMMAND ${MUSTER_node} ${CMAKE_CURRENT_SOURCE_DIR}/web/build.mjs ${generated}/page.html ${generated}/live.html
  DEPENDS ${page_sources}
  COMMENT "Joining the pages")

# html_<name> and html_<name>_end stand around each page; a zero byte follows.
foreach(name page live)
  file(CONFIGURE OUTPUT ${generated}/${name}.S @ONLY CONTENT [[
  .section .rodata
  .global html_@name@
  .global html_@name@_end
html_@name@:
  .incbin "@generated@/@name@.html"
html_@name@_end:
  .byte 0
  .section .note.GNU-stack,"",%progbits
]])
  set_source_files_properties(${generated}/${name}.S PROPERTIES OBJECT_DEPENDS ${generated}/${name}.html)
endforeach()
