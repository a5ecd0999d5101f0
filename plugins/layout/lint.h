// Looks at all files of a run and gathers their sites.
#pragma once

#include <sonde/sonde.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "options.h"
#include "site.h"

namespace sonde::layout_lint {

struct FileResult {
  std::string path;
  std::string target;  // "cuda:90"
  std::string error;   // why it could not be read, with line and column; "" otherwise
  uint32_t error_line = 0;
  uint32_t error_column = 0;
  uint64_t operations = 0;
  uint64_t unparsed = 0;  // encodings; 1 for a file that could not be read
  std::vector<Site> sites;
};

class Lint {
 public:
  Lint(const Host &host, Options options) : host_(host), options_(std::move(options)) {}

  // Reads what the option `files` names: folders are searched for *.ttgir. Throws Failure (SONDE_E_NOT_FOUND) for a
  // path that does not exist; a file that cannot be read is a result.
  void run();
  // One module; `path` is what reports call it.
  FileResult check(const std::string &path, const std::string &text) const;

  const Options &options() const { return options_; }
  const std::vector<FileResult> &files() const { return files_; }
  uint64_t sites() const;
  uint64_t unparsed() const;     // files and encodings that could not be read
  uint64_t unsupported() const;  // sites without a plan

 private:
  Host host_;
  Options options_;
  std::vector<FileResult> files_;
};

}  // namespace sonde::layout_lint
