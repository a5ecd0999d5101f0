#include "pictures.h"

#include <sonde/toolkit/names.h>
#include <sonde/toolkit/text.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>
#include <vector>

#include "publish.h"
#include "roofline_rows.h"
#include "svg.h"

namespace sonde::workload {
namespace {

// 0: white, 1: dark red, over yellow and orange.
std::string heat_color(double heat) {
  struct Stop {
    double at, red, green, blue;
  };
  constexpr Stop kStops[] = {{0, 255, 255, 229}, {0.35, 254, 196, 79}, {0.7, 217, 72, 1}, {1, 102, 10, 10}};
  size_t i = 1;
  while (i + 1 < std::size(kStops) && heat > kStops[i].at) ++i;
  const Stop &low = kStops[i - 1], &high = kStops[i];
  const double part = std::clamp((heat - low.at) / (high.at - low.at), 0.0, 1.0);
  const auto mixed = [&](double a, double b) { return static_cast<int>(std::lround(a + (b - a) * part)); };
  char text[8];
  std::snprintf(text, sizeof(text), "#%02x%02x%02x", mixed(low.red, high.red), mixed(low.green, high.green),
                mixed(low.blue, high.blue));
  return text;
}

std::string engineering(double value) {
  constexpr const char *kUnits[] = {"", "k", "M", "G", "T", "P"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g %s", value, kUnits[unit]);
  return text;
}

std::string address_text(uint64_t address) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

}  // namespace

std::string draw_heat_map(const Workload &workload) {
  constexpr double kLeft = 260, kTop = 44, kRow = 12, kWidth = 640, kEdge = 16;
  const Accesses &accesses = workload.accesses();
  std::map<std::tuple<uint32_t, uint32_t>, std::vector<const BlockHeat *>> groups;
  int64_t first = INT64_MAX, last = INT64_MIN;
  uint64_t most = 1;
  for (const auto *const entry : accesses.heat().blocks().sorted()) {
    const BlockHeat &block = entry->item;
    groups[{block.source, block.device}].push_back(&block);
    first = std::min(first, block.begin_ns);
    last = std::max(last, block.begin_ns + block.width_ns * static_cast<int64_t>(block.times.size()));
    for (const uint64_t amount : block.times) most = std::max(most, amount);
  }
  Svg svg;
  svg.text(kEdge, 20, "Accesses by address and time", "start", 14);
  if (groups.empty()) {
    svg.text(kEdge, kTop, "No accesses in the capture.");
    return svg.finish(kLeft + kWidth + kEdge, kTop + 20, "Accesses by address and time");
  }
  const double span = static_cast<double>(std::max<int64_t>(last - first, 1));
  double y = kTop;
  for (auto &[place, blocks] : groups) {
    const auto &[source, device] = place;
    std::sort(blocks.begin(), blocks.end(), [](const BlockHeat *a, const BlockHeat *b) {
      return std::tie(a->address, a->object) < std::tie(b->address, b->object);
    });
    std::string title = device == UINT32_MAX ? "host" : "device " + std::to_string(device);
    const auto owner = workload.sources().find(source);
    if (owner != workload.sources().end() && owner->second.process) {
      title += " of process " + std::to_string(*owner->second.process);
    }
    svg.text(kEdge, y + 10, title, "start", 12);
    y += 18;
    for (const BlockHeat *const block : blocks) {
      const std::string &name = accesses.object_text(block->name);
      svg.text(kLeft - 6, y + kRow - 3,
               (name.empty() ? "" : toolkit::ellipsize(name, 20) + " ") + address_text(block->address) + " " +
                   toolkit::format_bytes(block->bytes),
               "end", 9);
      svg.rectangle(kLeft, y, kWidth, kRow - 1, "#f4f4f4");
      for (size_t bin = 0; bin < block->times.size(); ++bin) {
        if (block->times[bin] == 0) continue;
        const double heat =
            most == 1 ? 1 : std::log(static_cast<double>(block->times[bin])) / std::log(static_cast<double>(most));
        const int64_t begin = block->begin_ns + block->width_ns * static_cast<int64_t>(bin) - first;
        svg.rectangle(kLeft + kWidth * static_cast<double>(begin) / span, y,
                      std::max(kWidth * static_cast<double>(block->width_ns) / span, 1.0), kRow - 1, heat_color(heat),
                      std::to_string(block->times[bin]) + " accesses from " + toolkit::format_ns(begin));
      }
      y += kRow;
    }
    y += 10;
  }
  svg.text(kLeft, y + 10, "0");
  svg.text(kLeft + kWidth, y + 10, toolkit::format_ns(last - first), "end");
  svg.text(kLeft + kWidth / 2, y + 10, "darker: more accesses, by logarithm, at most " + std::to_string(most),
           "middle");
  return svg.finish(kLeft + kWidth + kEdge, y + 24, "Accesses by address and time");
}

std::string draw_roofline(const Workload &workload) {
  constexpr double kLeft = 80, kTop = 40, kWidth = 720, kHeight = 420, kEdge = 20;
  const Ceilings &ceilings = workload.options().ceilings;
  std::vector<RooflineRow> rows = roofline_rows(workload);
  std::erase_if(rows, [](const RooflineRow &row) {
    return !row.point.dram_intensity || !row.point.rate || *row.point.dram_intensity <= 0 || *row.point.rate <= 0;
  });
  const double bandwidth = ceilings.traffic[static_cast<size_t>(Traffic::kDram)];
  double low_x = 0.1, high_x = 100, low_y = 1e12, high_y = 1e6;
  for (const RooflineRow &row : rows) {
    low_x = std::min(low_x, *row.point.dram_intensity);
    high_x = std::max(high_x, *row.point.dram_intensity);
    low_y = std::min(low_y, *row.point.rate);
    high_y = std::max(high_y, *row.point.rate);
  }
  for (const double work : ceilings.work) {
    if (work == 0) continue;
    high_y = std::max(high_y, work);
    if (bandwidth > 0) high_x = std::max(high_x, 4 * work / bandwidth);
  }
  // Whole decades.
  const double x0 = std::floor(std::log10(low_x)), x1 = std::ceil(std::log10(high_x));
  const double y0 = std::floor(std::log10(low_y)), y1 = std::max(std::ceil(std::log10(high_y)), y0 + 1);
  const auto at_x = [&](double value) { return kLeft + kWidth * (std::log10(value) - x0) / (x1 - x0); };
  const auto at_y = [&](double value) { return kTop + kHeight * (y1 - std::log10(value)) / (y1 - y0); };
  Svg svg;
  svg.text(kEdge, 20, "Roofline", "start", 14);
  for (double decade = x0; decade <= x1; ++decade) {
    const double x = at_x(std::pow(10, decade));
    svg.line(x, kTop, x, kTop + kHeight, "#e0e0e0");
    svg.text(x, kTop + kHeight + 16, engineering(std::pow(10, decade)), "middle", 10);
  }
  for (double decade = y0; decade <= y1; ++decade) {
    const double y = at_y(std::pow(10, decade));
    svg.line(kLeft, y, kLeft + kWidth, y, "#e0e0e0");
    svg.text(kLeft - 6, y + 4, engineering(std::pow(10, decade)), "end", 10);
  }
  svg.text(kLeft + kWidth / 2, kTop + kHeight + 34, "operations per byte of device memory", "middle");
  svg.text(kLeft, kTop - 6, "operations per second", "start", 10);
  for (size_t i = 0; i < kWorks; ++i) {
    const double work = ceilings.work[i];
    if (work <= 0 || std::log10(work) < y0) continue;
    const double ridge = bandwidth > 0 ? std::max(work / bandwidth, std::pow(10, x0)) : std::pow(10, x0);
    svg.line(at_x(std::min(ridge, std::pow(10, x1))), at_y(work), kLeft + kWidth, at_y(work), "#444444", 1.5);
    svg.text(kLeft + kWidth, at_y(work) - 4,
             std::string(work_name(static_cast<Work>(i))) + " " + engineering(work) + "/s", "end", 10);
  }
  if (bandwidth > 0) {
    const double top = *std::max_element(std::begin(ceilings.work), std::end(ceilings.work));
    const double end = top > 0 ? top / bandwidth : std::pow(10, x1);
    const double begin = std::max(std::pow(10, x0), std::pow(10, y0) / bandwidth);
    if (end > begin) svg.line(at_x(begin), at_y(begin * bandwidth), at_x(end), at_y(end * bandwidth), "#444444", 1.5);
    svg.text(kLeft + 8, kTop + 14, "dram " + engineering(bandwidth) + "B/s", "start", 10);
  }
  for (const RooflineRow &row : rows) {
    const std::string name = toolkit::shorten_kernel_name(workload.text(row.kernel.name));
    svg.circle(at_x(*row.point.dram_intensity), at_y(*row.point.rate), 3 + 12 * std::sqrt(row.time_share), "#2b6cb0",
               name + ": " + engineering(*row.point.rate) + "operations/s at " +
                   engineering(*row.point.dram_intensity) + "per byte, " + toolkit::format_share(row.time_share) +
                   " of the kernel time");
    if (row.time_share >= workload.options().roofline_time_share) {
      svg.text(at_x(*row.point.dram_intensity) + 8, at_y(*row.point.rate) - 8, toolkit::ellipsize(name, 40), "start",
               9);
    }
  }
  if (rows.empty()) svg.text(kLeft + 20, kTop + 40, "No kernel with time, work and traffic in the capture.");
  return svg.finish(kLeft + kWidth + kEdge, kTop + kHeight + 50, "Roofline");
}

void write_pictures(const Workload &workload, const Host &host) {
  const auto write = [&](std::string path, std::string (*draw)(const Workload &)) {
    if (path.empty()) return;
    // Several processes of a run would overwrite each other's files.
    constexpr std::string_view kPlace = "{process}";
    const std::string process = std::to_string(::getpid());
    for (size_t at = path.find(kPlace); at != std::string::npos; at = path.find(kPlace, at + process.size())) {
      path.replace(at, kPlace.size(), process);
    }
    const std::string text = draw(workload);
    std::FILE *const file = std::fopen(path.c_str(), "we");
    const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const bool closed = file != nullptr && std::fclose(file) == 0;
    if (!written || !closed) host.log(SONDE_LOG_ERROR, kOrigin, "cannot write the picture " + path);
  };
  write(workload.options().heat_map_picture, &draw_heat_map);
  write(workload.options().roofline_picture, &draw_roofline);
}

}  // namespace sonde::workload
