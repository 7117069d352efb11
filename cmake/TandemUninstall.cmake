# cmake -DFOLDER=build -P TandemUninstall.cmake: removes the files that `cmake --install` has listed
# in the build folder, and the folders that become empty.

file(GLOB manifests ${FOLDER}/install_manifest*.txt)
if(NOT manifests)
  message(FATAL_ERROR "${FOLDER} has no install_manifest.txt: nothing was installed from it")
endif()
foreach(manifest ${manifests})
  file(STRINGS ${manifest} files)
  foreach(file ${files})
    if(EXISTS "$ENV{DESTDIR}${file}" OR IS_SYMLINK "$ENV{DESTDIR}${file}")
      message(STATUS "Removing ${file}")
      file(REMOVE "$ENV{DESTDIR}${file}")
    endif()
    # Of the folders only Tandem's own: others are shared.
    get_filename_component(folder "$ENV{DESTDIR}${file}" DIRECTORY)
    while(folder MATCHES "/[Tt]andem(/plugins|/onnx|/models(/pretrained)?|/examples(/[^/]+)?)?$")
      execute_process(COMMAND rmdir "${folder}" RESULT_VARIABLE result ERROR_QUIET)
      if(NOT result EQUAL 0)  # there are more files in it
        break()
      endif()
      get_filename_component(folder "${folder}" DIRECTORY)
    endwhile()
  endforeach()
  file(REMOVE ${manifest})
endforeach()
