#include "core/base/text/svg.h"

#include <fmt/format.h>

#include "core/base/text/strings.h"

namespace tandem {

std::string svg_document(double width, double height, int font_size, const std::string& parts) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"{2}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{3}</svg>\n",
      width, height, font_size, parts);
}

std::string svg_text(double x, double y, std::string_view text, std::string_view more) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, more,
                     escape_xml(text));
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view more) {
  return fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, x2,
                     y1, y2, more);
}

std::string svg_rect(double x, double y, double width, double height, std::string_view fill,
                     std::string_view title) {
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\">"
      "<title>{}</title></rect>\n",
      x, y, width, height, fill, escape_xml(title));
}

}  // namespace tandem
