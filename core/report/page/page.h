// HTML pages of the program: one self-contained file for light and dark screens, which loads
// nothing. Text of the user enters a page only through escape_xml() or shown().
#pragma once

#include <string>
#include <vector>

namespace tandem {

// A whole page. `title` is text, `body` HTML.
[[nodiscard]] std::string html_page(const std::string& title, const std::string& body);

using HtmlRow = std::vector<std::string>;
// A table of HTML cells, which scrolls if it is wider than the page. `sortable`: by a click on a
// heading.
[[nodiscard]] std::string html_table(const HtmlRow& heading, const std::vector<HtmlRow>& rows,
                                     bool sortable = false);

// Escaped text of the user, cut after 80 bytes.
[[nodiscard]] std::string shown(const std::string& text);
// A bar of this share (0 to 1) of its cell, with HTML in front of it.
[[nodiscard]] std::string html_bar(double share, const std::string& text);
// "12.34 %"; a dash for a value that is not a number.
[[nodiscard]] std::string percent(double share, int digits = 1);

}  // namespace tandem
