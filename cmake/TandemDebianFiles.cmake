# Called by CPack before it packs the installed files. It makes Debian's packages as Debian wants them: copyright, changelog
# examples and guides in /usr/share/doc/PACKAGE, manual pages compressed, no needless sections in programs and libraries.
# SOURCE_DATE_EPOCH sets the date of the changelog.

string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
string(TIMESTAMP year "%Y" UTC)
set(copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Tandem

Files: *
Copyright: ${year} The Tandem authors
License: Apache-2.0

License: Apache-2.0
 On Debian systems the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
set(changelog "tandem (${CPACK_TANDEM_VERSION}) ${CPACK_TANDEM_DISTRIBUTION}; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}: changelog.gz says what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")

function(compress file)
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(component runtime library dev cuda mpi)
  set(folder ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
  if(NOT IS_DIRECTORY ${folder})
    continue()
  endif()
  string(TOUPPER ${component} name)
  set(documents ${folder}/share/doc/${CPACK_DEBIAN_${name}_PACKAGE_NAME})
  file(WRITE ${documents}/copyright "${copyright}")
  file(WRITE ${documents}/changelog.Debian "${changelog}")
  compress(${documents}/changelog.Debian)
  configure_file(${CPACK_TANDEM_CHANGELOG} ${documents}/changelog COPYONLY)
  compress(${documents}/changelog)
  file(GLOB pages ${folder}/share/man/man*/*.[1-9])
  foreach(page ${pages})
    compress(${page})
  endforeach()
  if(component STREQUAL "dev")
    file(RENAME ${folder}/share/tandem/examples ${documents}/examples)
    file(RENAME ${folder}/share/tandem/guides ${documents}/guides)
    file(REMOVE_RECURSE ${folder}/share/tandem)
  endif()
  file(GLOB_RECURSE binaries ${folder}/bin/* ${folder}/lib/*.so ${folder}/lib/*.so.*)
  foreach(binary ${binaries})
    if(NOT IS_SYMLINK ${binary})
      execute_process(COMMAND ${CPACK_TANDEM_STRIP} --strip-unneeded --remove-section=.comment --remove-section=.note ${binary}
        COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()
endforeach()
