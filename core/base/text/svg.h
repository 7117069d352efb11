// Parts of a drawing that is an SVG file of its own. `more`: further attributes, as SVG has them.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// On white. `parts`: what is drawn, one after the other.
[[nodiscard]] std::string svg_document(double width, double height, int font_size,
                                       const std::string& parts);
[[nodiscard]] std::string svg_text(double x, double y, std::string_view text,
                                   std::string_view more = "");
[[nodiscard]] std::string svg_line(double x1, double y1, double x2, double y2,
                                   std::string_view more);
// `title`: shown where the pointer is over it.
[[nodiscard]] std::string svg_rect(double x, double y, double width, double height,
                                   std::string_view fill, std::string_view title = "");

}  // namespace tandem
