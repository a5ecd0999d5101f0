# Writes the files of the scaffold into one C++ source: cmake -DFOLDER=... -DOUTPUT=... -P embed.cmake
file(GLOB_RECURSE files RELATIVE ${FOLDER} ${FOLDER}/*.in)
list(SORT files)
set(entries "")
foreach(file IN LISTS files)
  # Read as hexadecimal digits: a list separator or bracket in the text must not be taken for CMake's.
  file(READ ${FOLDER}/${file} digits HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" text "${digits}")
  # A string literal is limited in length; one a line of the file keeps each short.
  string(REPLACE "\\x0a" "\\n\"\n     \"" text "${text}")
  string(REGEX REPLACE "\\.in$" "" path "${file}")
  string(APPEND entries "    {\"${path}\",\n     \"${text}\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by embed.cmake from sdk/cli/scaffold.
#include \"cli/scaffold_files.h\"

namespace sonde::cli {

const std::vector<EmbeddedFile> &embedded_files() {
  static const std::vector<EmbeddedFile> files = {
${entries}  };
  return files;
}

}  // namespace sonde::cli
")
