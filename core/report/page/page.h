// HTML pages of the program: one self-contained file for light and dark screens, which loads
// nothing. What a page says is one JSON object in it, from which page.js draws tables, charts and
// pictures. Text of the user is in that object and in the title only, so that it cannot be HTML.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tandem {

// A whole page. `title` is text; `data` is what pages[data.page] in page.js reads; `comment` is
// HTML that stands in front of it.
[[nodiscard]] std::string html_page(const std::string& title, const nlohmann::json& data,
                                    const std::string& comment = "");

// The object in such a page; null if the text is no such page.
[[nodiscard]] nlohmann::json page_data(const std::string& page);

// Text of the user, cut after 80 bytes.
[[nodiscard]] std::string shown(const std::string& text);
// The name of a class, cut, or "class 3" for one without a name.
[[nodiscard]] std::string class_label(const std::vector<std::string>& names, int64_t label);

}  // namespace tandem
