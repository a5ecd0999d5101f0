// Captures and what they hold, for people and programs.
#pragma once

#include <sonde/sonde.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::cli {

struct CaptureDeleter {
  const sonde_store_service_t *service;
  void operator()(sonde_capture_t *capture) const { service->close(capture); }
};
using OwnedCapture = std::unique_ptr<sonde_capture_t, CaptureDeleter>;

OwnedCapture open_capture(const Host &host, const std::string &path);
std::vector<sonde_source_info_t> sources_of(const Host &host, sonde_capture_t *capture);
std::vector<sonde_loss_t> losses_of(const Host &host, sonde_capture_t *capture);

// "ring full", ... as the words of sonde.session's loss records.
std::string_view cause_words(uint32_t cause);

// "12 records", or "an unknown number of records within 4.00 KiB".
std::string loss_words(const sonde_loss_t &loss);

// Text of other people's making, with what could steer a terminal made visible.
std::string visible(std::string_view text);

// Files, bytes, records and losses.
void print_capture_summary(const Host &host, const std::string &path, FILE *file);

}  // namespace sonde::cli
