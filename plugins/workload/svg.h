// A few words of SVG.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace sonde::workload {

// Text of an element or attribute; bytes that XML forbids, or that may be no UTF-8, become '?'.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    switch (letter) {
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
        out += byte < 0x20 || byte > 0x7e ? '?' : letter;
    }
  }
  return out;
}

class Svg {
 public:
  void rectangle(double x, double y, double width, double height, std::string_view fill, std::string_view title = {}) {
    body_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) + "\" height=\"" +
             number(height) + "\" fill=\"" + std::string(fill) + "\"";
    close(title, "rect");
  }
  void circle(double x, double y, double radius, std::string_view fill, std::string_view title) {
    body_ += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(radius) + "\" fill=\"" +
             std::string(fill) + "\" fill-opacity=\"0.7\"";
    close(title, "circle");
  }
  void line(double x1, double y1, double x2, double y2, std::string_view color, double width = 1) {
    body_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
             "\" stroke=\"" + std::string(color) + "\" stroke-width=\"" + number(width) + "\"/>\n";
  }
  // anchor: "start", "middle" or "end"
  void text(double x, double y, std::string_view words, std::string_view anchor = "start", double size = 11) {
    body_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" font-size=\"" + number(size) + "\" text-anchor=\"" +
             std::string(anchor) + "\">" + escaped(words) + "</text>\n";
  }

  std::string finish(double width, double height, std::string_view title) const {
    const std::string size = number(width), tall = number(height);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" height=\"" + tall + "\" viewBox=\"0 0 " +
           size + " " + tall + "\" font-family=\"sans-serif\">\n<title>" + escaped(title) + "</title>\n<rect width=\"" +
           size + "\" height=\"" + tall + "\" fill=\"#ffffff\"/>\n" + body_ + "</svg>\n";
  }

 private:
  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.2f", value);
    std::string out = text;
    while (out.ends_with('0')) out.pop_back();
    if (out.ends_with('.')) out.pop_back();
    return out;
  }
  void close(std::string_view title, std::string_view element) {
    if (title.empty()) {
      body_ += "/>\n";
    } else {
      body_ += "><title>" + escaped(title) + "</title></" + std::string(element) + ">\n";
    }
  }

  std::string body_;
};

}  // namespace sonde::workload
