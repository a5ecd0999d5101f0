// What rules have in common: what was captured, and how findings are made.
#pragma once

#include <sonde/sonde.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "publish.h"

namespace sonde::memory {

// "1 kernel", "3 launches".
std::string count_of(uint64_t count, const char *thing);
// As in options: 0.5, 1e+06.
std::string short_number(double value);
double part_of(uint64_t some, uint64_t whole);
// "early allocation".
std::string in_words(std::string_view rule);

// Each rule reports what breaks it, worst first; where nothing does, one finding says that it looked, or why it could not.
class Rules {
 public:
  Rules(const Memory &memory, const Host &host, sonde_session_t *session);

 protected:
  Finding finding(std::string_view rule) const;
  void publish(Finding finding) const { finding.publish(host_, session_); }
  // " of process 77" where there are several.
  std::string owner(uint32_t source) const;

  const Memory &memory_;
  const Objects &objects_;
  const Options &options_;
  const Host &host_;
  sonde_session_t *session_;
  // Over all processes.
  uint64_t launches_ = 0;
  uint64_t watched_ = 0;
  uint64_t incomplete_ = 0;
  uint64_t transfers_ = 0;
  bool has_bytes_ = false;
  bool has_pages_ = false;
};

// The patterns of objects.
class PatternRules : public Rules {
 public:
  using Rules::Rules;
  void all() const;

 private:
  std::string threshold(const char *name, const KernelThreshold &value) const;
  std::string formula(Pattern pattern) const;
  std::string message(const Usage &usage, Pattern pattern) const;
  static uint32_t severity(const Usage &usage, Pattern pattern);
  void numbers(Finding &result, const Usage &usage, Pattern pattern) const;
  static double confidence(const Group &group, const Usage &usage, Pattern pattern);
  void pattern(Pattern pattern) const;
  void redundant() const;
  void none(Pattern pattern, uint64_t looked, uint64_t uncertain) const;
};

// Peaks, allocators, orders and what the capture lacks.
class RunRules : public Rules {
 public:
  using Rules::Rules;
  void all(const std::vector<std::string> &file_errors) const;

 private:
  void peak() const;
  void reserved_unused() const;
  void fragmentation() const;
  void stream_ordered_free() const;
  void unmatched_free() const;
  void complete() const;
};

}  // namespace sonde::memory
