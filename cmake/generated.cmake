# Code made at build time: protobuf-c structs for the cold JuggleIM bodies, and the facts of this build.
find_program(PROTOC_C protoc-c REQUIRED)
set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated})

# Asks git each build, so that a report never carries the commit of an earlier one.
add_custom_target(build_facts
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR} -DOUT=${generated}/build_facts.h
          -DVERSION=${PROJECT_VERSION} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/build_facts.cmake
  BYPRODUCTS ${generated}/build_facts.h)

add_custom_command(
  OUTPUT ${generated}/juggle.pb-c.c ${generated}/juggle.pb-c.h
  COMMAND ${PROTOC_C} --proto_path=${CMAKE_CURRENT_SOURCE_DIR}/src/wire --c_out=${generated} juggle.proto
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/wire/juggle.proto)
add_custom_target(generated_code DEPENDS ${generated}/juggle.pb-c.c)

# The presets of scenarios/, compiled in so that muster is one file that needs no other.
file(GLOB presets CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/scenarios/*.yaml)
add_custom_command(
  OUTPUT ${generated}/presets.c
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/scenarios -DOUT=${generated}/presets.c
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/presets.cmake
  DEPENDS ${presets} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/presets.cmake)
