# What `cmake --install` and `make deb` put where: programs, manual pages, completions and documents. The manual pages
# and completions are made by the programs themselves, so only builds that run at full speed make them.
include(GNUInstallDirs)
install(TARGETS muster musterd)

if(NOT MUSTER_SANITIZE AND NOT MUSTER_FUZZ)
  set(manuals ${CMAKE_CURRENT_BINARY_DIR}/share)
  add_custom_command(
    OUTPUT ${manuals}/made
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${manuals}
    COMMAND ${MUSTER_node} ${CMAKE_CURRENT_SOURCE_DIR}/packaging/manuals.mjs $<TARGET_FILE:muster> $<TARGET_FILE:musterd>
            ${manuals}
    COMMAND gzip -9nr ${manuals}/man
    COMMAND gzip -9nc ${CMAKE_CURRENT_SOURCE_DIR}/CHANGELOG.md > ${manuals}/changelog.gz
    COMMAND ${CMAKE_COMMAND} -E touch ${manuals}/made
    DEPENDS muster musterd ${CMAKE_CURRENT_SOURCE_DIR}/packaging/manuals.mjs ${CMAKE_CURRENT_SOURCE_DIR}/CHANGELOG.md
    COMMENT "Writing manual pages and completions")
  add_custom_target(manuals ALL DEPENDS ${manuals}/made)
  install(DIRECTORY ${manuals}/man ${manuals}/bash-completion ${manuals}/zsh DESTINATION ${CMAKE_INSTALL_DATAROOTDIR})
  install(FILES ${manuals}/changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING
        PATTERN "*.md" PATTERN "*.schema.json" PATTERN "*.yaml")
install(FILES README.md packaging/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME muster)
set(CPACK_PACKAGE_CONTACT "muster maintainers <maintainers@muster.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "benchmark suite for real-time messaging servers")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Drives JuggleIM, MQTT, NATS, Redis, Socket.IO, STOMP, Ricochet and WebSocket
servers with simulated clients on an open-loop schedule, and accounts for every
expected delivery. musterd, a JuggleIM-compatible server, comes along.")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
include(CPack)
