#pragma once

#include <sstream>
#include <string>

namespace optim_offload::bench {

/// Writes a picture as SVG text; units are pixels from the top left corner.
class SvgWriter {
 public:
  /// `run` is kept in the picture, so that a reader can tell which run it belongs to.
  SvgWriter(double width, double height, const std::string& run);

  enum class Anchor { Start, Middle, End };

  void rect(double x, double y, double width, double height, const std::string& color,
            const std::string& tooltip = "");
  void line(double x1, double y1, double x2, double y2, const std::string& color,
            bool dashed = false);
  void text(double x, double y, const std::string& text, double size = 12,
            Anchor anchor = Anchor::Start, bool bold = false);

  /// The finished picture.
  std::string finish() const;

 private:
  std::ostringstream out_;
};

/// `text` with the characters that XML reserves replaced.
std::string escape_xml(const std::string& text);

/// `value` with three significant digits or, from 1000 on, as a whole number.
std::string short_number(double value);

}  // namespace optim_offload::bench
