#include "bench/svg.h"

#include <cmath>
#include <cstdio>

namespace optim_offload::bench {

namespace {

constexpr const char* kFont = "font-family=\"Helvetica, Arial, sans-serif\"";
constexpr const char* kInk = "#222222";

// Two decimals: finer than any screen, and the same text on every machine.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", value);
  return text;
}

}  // namespace

std::string escape_xml(const std::string& text) {
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
        out += c;
    }
  }
  return out;
}

std::string short_number(double value) {
  char text[32];
  const double size = std::fabs(value);
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}

SvgWriter::SvgWriter(double width, double height, const std::string& run) {
  out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << number(width) << "\" height=\""
       << number(height) << "\" viewBox=\"0 0 " << number(width) << " " << number(height)
       << "\">\n<metadata>run " << escape_xml(run) << "</metadata>\n";
  // Its own background, so that it reads on dark pages too.
  rect(0, 0, width, height, "#ffffff");
}

void SvgWriter::rect(double x, double y, double width, double height, const std::string& color,
                     const std::string& tooltip) {
  out_ << "<rect x=\"" << number(x) << "\" y=\"" << number(y) << "\" width=\"" << number(width)
       << "\" height=\"" << number(height) << "\" fill=\"" << color << "\"";
  if (tooltip.empty()) {
    out_ << "/>\n";
  } else {
    out_ << "><title>" << escape_xml(tooltip) << "</title></rect>\n";
  }
}

void SvgWriter::line(double x1, double y1, double x2, double y2, const std::string& color,
                     bool dashed) {
  out_ << "<line x1=\"" << number(x1) << "\" y1=\"" << number(y1) << "\" x2=\"" << number(x2)
       << "\" y2=\"" << number(y2) << "\" stroke=\"" << color << "\""
       << (dashed ? " stroke-dasharray=\"4 3\"" : "") << "/>\n";
}

void SvgWriter::text(double x, double y, const std::string& text, double size, Anchor anchor,
                     bool bold) {
  const char* where = anchor == Anchor::Start ? "start" : anchor == Anchor::End ? "end" : "middle";
  out_ << "<text x=\"" << number(x) << "\" y=\"" << number(y) << "\" font-size=\"" << number(size)
       << "\" text-anchor=\"" << where << "\" fill=\"" << kInk << "\" " << kFont
       << (bold ? " font-weight=\"bold\"" : "") << ">" << escape_xml(text) << "</text>\n";
}

std::string SvgWriter::finish() const { return out_.str() + "</svg>\n"; }

}  // namespace optim_offload::bench
