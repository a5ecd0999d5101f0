// Starting the program that is measured.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sonde::cli {

struct Launch {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // set over the present one
};

// Runs the program on this process's terminal and files, forwards SIGINT, SIGTERM, SIGHUP and SIGQUIT that were sent
// to this process alone (a terminal sends them to both), and waits for it. Returns its exit status as a shell would:
// 128 + n when signal n ended it, 127 when it does not exist, 126 when it cannot be started; then the reason goes to
// standard error.
int launch_and_wait(const Launch &launch);

}  // namespace sonde::cli
