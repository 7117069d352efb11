#include "core/report/page/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/text/strings.h"

namespace tandem {

// page.html with page.css and page.js in it, which CMake compiles into the library. Its marks are
// @title@, @comment@ and @data@, in this order.
extern const std::string_view page_template;

std::string html_page(const std::string& title, const nlohmann::json& data,
                      const std::string& comment) {
  std::string text;
  for (const char c : data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) {
    // Neither the end of the script nor "<!--" may be in it. In JSON, "<" is in texts only.
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  std::string page(page_template);
  const auto put = [&page](std::string_view mark, const std::string& value) {
    page.replace(page.find(mark), mark.size(), value);
  };
  put("@data@", text);  // the last mark first: a text of the user may be a mark, too
  put("@comment@", comment);
  put("@title@", escape_xml(title));
  return page;
}

nlohmann::json page_data(const std::string& page) {
  constexpr std::string_view begin = "<script id=data type=\"application/json\">",
                             end = "</script>";
  const size_t at = page.find(begin), from = at + begin.size();
  if (at == std::string::npos) return {};
  const nlohmann::json data =
      nlohmann::json::parse(page.substr(from, page.find(end, from) - from), nullptr, false);
  return data.is_discarded() ? nlohmann::json() : data;
}

std::string shown(const std::string& text) {
  constexpr size_t max_bytes = 80;
  return text.size() <= max_bytes ? text : first_bytes(text, max_bytes) + "…";
}

std::string class_label(const std::vector<std::string>& names, int64_t label) {
  const auto index = size_t(label);
  return index < names.size() ? shown(names[index]) : fmt::format("class {}", label);
}

}  // namespace tandem
