#include "run/identity.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sonde/version.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sonde::run {

namespace {

std::string read_small_file(const char *path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string file_name_of(std::string text) {
  for (char &character : text) {
    const bool safe = (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
                      (character >= '0' && character <= '9') || character == '.' || character == '_';
    if (!safe) character = '_';
  }
  return text.empty() ? "host" : text;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(descriptor, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

}  // namespace

bool ignores_environment() {
  return ::getauxval(AT_SECURE) != 0 || ::getuid() != ::geteuid() || ::getgid() != ::getegid();
}

std::string Identity::stem() const { return fmt::format("{}-{}-{}-{}", host, process, start_ns, image); }

uint64_t start_from_stat(std::string_view stat, uint64_t ticks) {
  // The program's name stands in parentheses and may hold any character; the 22nd field is the 20th after it.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || ticks == 0) return 0;
  std::string_view rest = stat.substr(name_end + 1);
  for (int field = 3; field <= 22; ++field) {
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    const size_t end = rest.find(' ');
    if (field == 22) {
      uint64_t value = 0;
      const std::string_view digits = rest.substr(0, end);
      const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || stop != digits.data() + digits.size()) return 0;
      return value * (1'000'000'000 / ticks);
    }
    if (end == std::string_view::npos) return 0;
    rest.remove_prefix(end);
  }
  return 0;
}

Identity identify_process() {
  Identity identity;
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  identity.host = file_name_of(host);
  identity.boot = read_small_file("/proc/sys/kernel/random/boot_id");
  while (identity.boot.ends_with('\n')) identity.boot.pop_back();
  identity.process = static_cast<uint64_t>(::getpid());
  const long ticks = ::sysconf(_SC_CLK_TCK);
  identity.start_ns = start_from_stat(read_small_file("/proc/self/stat"), ticks > 0 ? static_cast<uint64_t>(ticks) : 0);
  if (const char *const image = std::getenv("SONDE_EXEC"); image != nullptr && !ignores_environment()) {
    const auto [stop, error] = std::from_chars(image, image + std::strlen(image), identity.image);
    if (error != std::errc() || *stop != '\0') identity.image = 0;
  }
  return identity;
}

std::string fresh_capture_stem(const std::string &folder, Identity &identity) {
  while (true) {
    std::string stem = folder + "/" + identity.stem();
    if (::access((stem + ".sonde").c_str(), F_OK) != 0 && ::access((stem + ".sonde.live").c_str(), F_OK) != 0) {
      return stem;
    }
    ++identity.image;
  }
}

Result<void> make_run_folder(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    return Error{SONDE_E_IO, fmt::format("{}: cannot make this folder: {}", folder,
                                         error ? error.message() : "something else is there")};
  }
  return {};
}

Result<void> write_run_json(const std::string &folder, const Identity &identity) {
  const std::string path = folder + "/run.json";
  if (::access(path.c_str(), F_OK) == 0) return {};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::string command = read_small_file("/proc/self/cmdline");
  nlohmann::ordered_json words = nlohmann::ordered_json::array();
  for (size_t at = 0; at < command.size();) {
    const size_t end = std::min(command.find('\0', at), command.size());
    words.push_back(command.substr(at, end - at));
    at = end + 1;
  }
  nlohmann::ordered_json json;
  json["format"] = "sonde.run/1";
  json["tool"] = fmt::format("sonde {}.{}.{}", SONDE_VERSION_MAJOR, SONDE_VERSION_MINOR, SONDE_VERSION_PATCH);
  json["command"] = words;
  json["created_ns"] = static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  json["host"] = identity.host;
  json["boot"] = identity.boot;
  // A command line is bytes; what is no UTF-8 in it is replaced.
  const std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";

  // Whole or not at all, and only by the first: link() does not replace.
  const std::string partial = fmt::format("{}.{}", path, identity.process);
  const int descriptor = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool done = descriptor >= 0 && write_all(descriptor, text);
  int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (done && ::link(partial.c_str(), path.c_str()) != 0 && errno != EEXIST) {
    // A file system without links: the last rename wins, which is whole as well.
    done = ::rename(partial.c_str(), path.c_str()) == 0;
    error = errno;
  }
  ::unlink(partial.c_str());
  if (!done) return Error{SONDE_E_IO, fmt::format("{}: cannot write: {}", path, std::strerror(error))};
  return {};
}

}  // namespace sonde::run
