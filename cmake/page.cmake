# The HTML report's page: web/ and uPlot from npm, joined into one file that the report room carries.
foreach(program node npm)
  find_program(MUSTER_${program} ${program})
  if(NOT MUSTER_${program})
    message(FATAL_ERROR "The HTML report's page is made with node and npm, and ${program} is not installed: "
                        "apt-get install nodejs npm (`make build` does it)")
  endif()
endforeach()

file(GLOB page_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/web/*.js ${CMAKE_CURRENT_SOURCE_DIR}/web/*.mjs
     ${CMAKE_CURRENT_SOURCE_DIR}/web/page.* ${CMAKE_CURRENT_SOURCE_DIR}/web/package-lock.json)
add_custom_command(
  OUTPUT ${generated}/page.html
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/scripts/npm-install web
  COMMAND ${MUSTER_node} ${CMAKE_CURRENT_SOURCE_DIR}/web/build.mjs ${generated}/page.html
  DEPENDS ${page_sources}
  COMMENT "Joining the HTML report's page")

file(CONFIGURE OUTPUT ${generated}/page.S @ONLY CONTENT [[
  .section .rodata
  .global html_page
  .global html_page_end
html_page:
  .incbin "@generated@/page.html"
html_page_end:
  .byte 0
  .section .note.GNU-stack,"",%progbits
]])
set_source_files_properties(${generated}/page.S PROPERTIES OBJECT_DEPENDS ${generated}/page.html)
