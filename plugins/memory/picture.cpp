#include "picture.h"

#include <sonde/toolkit/names.h>
#include <sonde/toolkit/text.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "advice.h"

namespace sonde::memory {
namespace {

using toolkit::format_bytes;
using toolkit::format_ns;
using toolkit::MemoryObject;
using toolkit::ObjectEnd;

// Pixels.
constexpr double kWidth = 1200, kLeft = 250, kRight = 24, kRow = 16, kBar = 11, kCurve = 80, kHeading = 34, kTicks = 24;
constexpr double kPlot = kWidth - kLeft - kRight;
constexpr size_t kLabel = 24;  // characters that fit beside a size

struct Colour {
  const char *name;
  const char *fill;
};
constexpr Colour kLife = {"lives", "#d5dae1"}, kUsed = {"in use", "#3f9c6d"}, kEarly = {"early", "#3b78c2"},
                 kLate = {"late or leaked", "#cf4a3f"}, kIdle = {"idle", "#e6a532"}, kUnused = {"unused", "#8c62b8"};

std::string number(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.1f", value);
  return buffer;
}

std::string escape(const std::string &text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters may not stand in a document at all.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string text(double x, double y, const std::string &content, const char *style) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + style + ">" + escape(content) + "</text>\n";
}

std::string rectangle(double x, double y, double width, double height, const char *fill) {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(std::max(width, 0.8)) +
         "\" height=\"" + number(height) + "\" fill=\"" + fill + "\"/>\n";
}

// Groups with something to show, largest peak first, and their objects.
struct Drawn {
  const Group *group;
  std::vector<const Usage *> objects;
};

std::vector<Drawn> drawn(const Memory &memory) {
  std::vector<Drawn> out;
  size_t left = static_cast<size_t>(memory.options().picture_objects);
  for (const auto &[key, group] : memory.objects().groups()) {
    if (group->begins != 0) out.push_back({group.get(), {}});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Drawn &a, const Drawn &b) { return a.group->peak_bytes > b.group->peak_bytes; });
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].objects = out[i].group->worst.sorted();
    // Each group gets an equal part of what is left.
    const size_t share = std::max<size_t>(left / (out.size() - i), 1);
    if (out[i].objects.size() > share) out[i].objects.resize(share);
    left -= std::min(left, out[i].objects.size());
    std::sort(out[i].objects.begin(), out[i].objects.end(), [](const Usage *a, const Usage *b) {
      return a->object.begin_ns != b->object.begin_ns ? a->object.begin_ns < b->object.begin_ns
                                                      : a->object.id < b->object.id;
    });
  }
  return out;
}

class Drawing {
 public:
  explicit Drawing(const Memory &memory) : memory_(memory), is_time_(memory.options().time_axis) {}

  std::string draw() {
    const std::vector<Drawn> groups = drawn(memory_);
    double y = 64;
    std::string body;
    for (const Drawn &one : groups) body += group(one, y);
    if (groups.empty()) {
      body += text(20, y + 20, "The capture holds no device memory.", "class=\"label\"");
      y += 40;
    }
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(kWidth) + "\" height=\"" + number(y + 10) +
           "\" viewBox=\"0 0 " + number(kWidth) + " " + number(y + 10) +
           "\" font-family=\"Helvetica, Arial, sans-serif\">\n"
           "<style>.title{font-size:17px;font-weight:bold;fill:#1c2733}.label{font-size:11px;fill:#333}"
           ".tick{font-size:10px;fill:#666}.peak{font-size:10px;fill:#a3231a}g.bar:hover rect{stroke:#000;"
           "stroke-width:0.6}</style>\n"
           "<rect x=\"0\" y=\"0\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
           text(20, 26, "Memory objects over " + std::string(is_time_ ? "time" : "operations"), "class=\"title\"") +
           legend() + body + "</svg>\n";
  }

 private:
  std::string legend() const {
    std::string out;
    double x = 20;
    for (const Colour &colour : {kLife, kUsed, kEarly, kLate, kIdle, kUnused}) {
      out += rectangle(x, 40, 14, kBar, colour.fill);
      out += text(x + 19, 49.5, colour.name, "class=\"label\"");
      x += 40 + 6.5 * static_cast<double>(std::char_traits<char>::length(colour.name));
    }
    return out;
  }

  int64_t position(int64_t time_ns, uint64_t operation) const {
    return is_time_ ? time_ns : static_cast<int64_t>(operation);
  }
  double x_of(int64_t position) const {
    const double part =
        static_cast<double>(position - begin_) / static_cast<double>(std::max<int64_t>(end_ - begin_, 1));
    return kLeft + std::clamp(part, 0.0, 1.0) * kPlot;
  }

  std::string group(const Drawn &one, double &y) {
    const Group &group = *one.group;
    const Process &process = *group.process;
    begin_ = is_time_ ? process.first_ns : 0;
    end_ = is_time_ ? process.last_ns : static_cast<int64_t>(process.operations);
    std::string heading = std::string(level_name(group.level)) + "s on device " + std::to_string(group.device);
    if (const auto id = memory_.process_ids().find(group.source); id != memory_.process_ids().end()) {
      heading += " of process " + std::to_string(id->second);
    }
    heading += ": peak " + format_bytes(group.peak_bytes);
    if (process.has_accesses()) heading += ", needed at most " + format_bytes(group.needed_peak());
    std::string out = text(20, y + 22, heading, "class=\"label\" font-weight=\"bold\"");
    y += kHeading;
    out += curve(group, y);
    const double top = y;
    y += kCurve + 8;
    for (const Usage *const usage : one.objects) {
      out += bar(*usage, y);
      y += kRow;
    }
    const double peak = x_of(position(group.peak_ns, group.peak_operation));
    out += "<line x1=\"" + number(peak) + "\" y1=\"" + number(top) + "\" x2=\"" + number(peak) + "\" y2=\"" +
           number(y) + "\" stroke=\"#a3231a\" stroke-width=\"1\" stroke-dasharray=\"4 3\"><title>peak: " +
           format_bytes(group.peak_bytes) + "</title></line>\n";
    const bool is_right = peak > kLeft + kPlot / 2;
    out += text(is_right ? peak - 4 : peak + 4, top + 11, "peak",
                is_right ? "class=\"peak\" text-anchor=\"end\"" : "class=\"peak\"");
    if (group.worst.left_out() != 0 || one.objects.size() < group.worst.sorted().size()) {
      const uint64_t more = group.worst.left_out() + group.worst.sorted().size() - one.objects.size();
      out += text(20, y + 11, "and " + std::to_string(more) + " more objects, which waste less", "class=\"tick\"");
    }
    out += ticks(y);
    y += kTicks + 8;
    return out;
  }

  // The most bytes of each stretch of time, as an area.
  std::string curve(const Group &group, double y) const {
    const std::vector<toolkit::Timeline::Point> points = group.level_curve.points();
    std::string area = "M" + number(kLeft) + " " + number(y + kCurve);
    double last = y + kCurve;
    for (const toolkit::Timeline::Point &point : points) {
      const double height =
          kCurve * static_cast<double>(point.peak) / static_cast<double>(std::max<uint64_t>(group.peak_bytes, 1));
      const double x = x_of(point.begin);
      area += "L" + number(x) + " " + number(last) + "L" + number(x) + " " + number(y + kCurve - height);
      last = y + kCurve -
             kCurve * static_cast<double>(point.last) / static_cast<double>(std::max<uint64_t>(group.peak_bytes, 1));
      area += "L" + number(x + 0.5) + " " + number(last);
    }
    area +=
        "L" + number(kLeft + kPlot) + " " + number(last) + "L" + number(kLeft + kPlot) + " " + number(y + kCurve) + "Z";
    std::string out = "<path d=\"" + area + "\" fill=\"#b8cce4\" stroke=\"#5b7fa8\" stroke-width=\"0.8\"/>\n";
    out += text(kLeft - 8, y + 9, format_bytes(group.peak_bytes), "class=\"tick\" text-anchor=\"end\"");
    out += text(kLeft - 8, y + kCurve, "0", "class=\"tick\" text-anchor=\"end\"");
    if (group.process->has_accesses() && group.peak_bytes != 0) {
      const double needed =
          y + kCurve - kCurve * static_cast<double>(group.needed_peak()) / static_cast<double>(group.peak_bytes);
      out += "<line x1=\"" + number(kLeft) + "\" y1=\"" + number(needed) + "\" x2=\"" + number(kLeft + kPlot) +
             "\" y2=\"" + number(needed) +
             "\" stroke=\"#3f9c6d\" stroke-width=\"1\" stroke-dasharray=\"2 3\">"
             "<title>needed at one time, first to last use: " +
             format_bytes(group.needed_peak()) + "</title></line>\n";
    }
    return out;
  }

  std::string bar(const Usage &usage, double y) const {
    const MemoryObject &object = usage.object;
    const double top = y + (kRow - kBar) / 2;
    const double begin = x_of(position(object.begin_ns, object.begin_operation));
    const double end = std::max(begin, x_of(position(object.end_ns, object.end_operation)));
    std::string label = memory_.name_of_object(object);
    if (usage.scope_name != 0) label += " " + memory_.text(usage.scope_name);
    label = toolkit::ellipsize(label, kLabel);
    std::string out = "<g class=\"bar\"><title>" + escape(hover(usage)) + "</title>\n";
    out += text(20, y + 12, label, "class=\"label\"");
    out += text(kLeft - 8, y + 12, format_bytes(object.bytes), "class=\"label\" text-anchor=\"end\"");
    const bool is_unused = usage.patterns.has(Pattern::kUnusedAllocation);
    out += rectangle(begin, top, end - begin, kBar, is_unused ? kUnused.fill : kLife.fill);
    if (usage.uses != 0) {
      // An operation is one step wide along operations; along time its length is not known, so it is made visible.
      const uint64_t step = is_time_ ? 0 : 1;
      const double first = std::max(begin, x_of(position(usage.first.time_ns, usage.first.operation)));
      const double last =
          std::clamp(x_of(position(usage.last.time_ns, usage.last.operation + step)), first, std::max(first, end));
      if (usage.patterns.has(Pattern::kEarlyAllocation)) out += rectangle(begin, top, first - begin, kBar, kEarly.fill);
      if (usage.patterns.has(Pattern::kLateDeallocation) || usage.patterns.has(Pattern::kLeak)) {
        out += rectangle(last, top, end - last, kBar, kLate.fill);
      }
      out += rectangle(first, top, std::max(last - first, 2.0), kBar, kUsed.fill);
      if (usage.patterns.has(Pattern::kTemporaryIdleness)) {
        for (const IdleSlice &slice : usage.idle) {
          const double from = x_of(position(slice.from.time_ns, slice.from.operation + step));
          out += rectangle(from, top, x_of(position(slice.to.time_ns, slice.to.operation)) - from, kBar, kIdle.fill);
        }
      }
    } else if (usage.patterns.has(Pattern::kLeak)) {
      out += rectangle(end - 3, top, 3, kBar, kLate.fill);
    }
    return out + "</g>\n";
  }

  std::string hover(const Usage &usage) const {
    const MemoryObject &object = usage.object;
    std::string out = object_title(memory_, usage) + "\nobject " + std::to_string(object.id) + ", lived " +
                      format_ns(object.end_ns - object.begin_ns) +
                      (object.end == ObjectEnd::kAlive ? " and was not freed" : "");
    if (usage.uses != 0) {
      out += "\nused " + std::to_string(usage.uses) + " times, from " + use_name(memory_, usage.first) + " to " +
             use_name(memory_, usage.last);
    }
    for (size_t i = 0; i < kPatterns; ++i) {
      if (!usage.patterns.has(pattern_at(i))) continue;
      out += "\n" + std::string(kPatternNames[i]) + ": " + suggestion(memory_, usage, pattern_at(i));
    }
    return out;
  }

  std::string ticks(double y) const {
    std::string out;
    for (int i = 0; i <= 4; ++i) {
      const int64_t position = begin_ + (end_ - begin_) * i / 4;
      const double x = kLeft + kPlot * i / 4;
      const char *const style = i == 4   ? "class=\"tick\" text-anchor=\"end\""
                                : i == 0 ? "class=\"tick\""
                                         : "class=\"tick\" text-anchor=\"middle\"";
      out += "<line x1=\"" + number(x) + "\" y1=\"" + number(y + 2) + "\" x2=\"" + number(x) + "\" y2=\"" +
             number(y + 7) + "\" stroke=\"#666\"/>\n";
      out += text(x, y + 18, is_time_ ? format_ns(position - begin_) : std::to_string(position), style);
    }
    return out;
  }

  const Memory &memory_;
  bool is_time_;
  int64_t begin_ = 0;
  int64_t end_ = 0;
};

}  // namespace

std::string draw_objects(const Memory &memory) { return Drawing(memory).draw(); }

std::string draw_page(const Memory &memory) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Memory objects</title>\n"
      "<style>body{margin:0;font:13px Helvetica,Arial,sans-serif;color:#1c2733}svg{display:block;max-width:100%;"
      "height:auto}table{border-collapse:collapse;margin:12px 20px 40px}th,td{text-align:left;padding:3px 10px;"
      "border-bottom:1px solid #dde2e8;vertical-align:top}td.number{text-align:right;white-space:nowrap}"
      "th{background:#f3f5f8}</style></head><body>\n" +
      draw_objects(memory) +
      "<table><tr><th>object</th><th>what</th><th>size</th><th>wasted</th><th>pattern</th><th>suggestion</th></tr>\n";
  for (const Drawn &one : drawn(memory)) {
    for (const Usage *const usage : one.group->worst.sorted()) {
      for (size_t i = 0; i < kPatterns; ++i) {
        const Pattern pattern = pattern_at(i);
        if (!usage->patterns.has(pattern)) continue;
        char wasted[40];
        std::snprintf(wasted, sizeof(wasted), "%.3g B s", usage->saved(pattern) * 1e-9);
        out += "<tr><td class=\"number\">" + std::to_string(usage->object.id) + "</td><td>" +
               escape(object_title(memory, *usage)) + "</td><td class=\"number\">" +
               escape(format_bytes(usage->object.bytes)) + "</td><td class=\"number\">" + wasted + "</td><td>" +
               std::string(name_of(pattern)) + "</td><td>" + escape(suggestion(memory, *usage, pattern)) +
               "</td></tr>\n";
      }
    }
  }
  return out + "</table></body></html>\n";
}

std::string write_file(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::trunc | std::ios::binary);
  file << text;
  file.close();
  return file ? "" : path + " cannot be written";
}

}  // namespace sonde::memory
