#include "core/report/page/page.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/text/strings.h"

namespace tandem {

// page.html with page.css and page.js in it, which CMake compiles into the library. Its marks are
// @title@, @comment@ and @data@, in this order.
extern const std::string_view page_template;

namespace {

using nlohmann::json;

// Numbers of six digits, which a picture does not show more of.
json point_json(double x, double y) {
  const auto rounded = [](double value) {
    return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
  };
  return {rounded(x), rounded(y)};
}

json points_json(const std::vector<std::pair<double, double>>& points) {
  constexpr size_t max_points = 400;
  const size_t parts = std::min(points.size(), max_points);
  json result = json::array();
  for (size_t part = 0; part < parts; ++part) {
    const size_t begin = part * points.size() / parts, end = (part + 1) * points.size() / parts;
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) {
      x += points[i].first;
      y += points[i].second;
    }
    const auto count = double(end - begin);
    result.push_back(point_json(x / count, y / count));
  }
  return result;
}

}  // namespace

std::string html_page(const std::string& title, const json& data, const std::string& comment) {
  std::string text;
  for (const char c : data.dump(-1, ' ', false, json::error_handler_t::replace)) {
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

std::string shown(const std::string& text) {
  constexpr size_t max_bytes = 80;
  return text.size() <= max_bytes ? text : first_bytes(text, max_bytes) + "…";
}

std::string class_label(const std::vector<std::string>& names, int64_t label) {
  const auto index = size_t(label);
  return index < names.size() ? shown(names[index]) : fmt::format("class {}", label);
}

json charts_json(std::vector<Chart> charts) {
  json result = json::array();
  for (Chart& chart : charts) {
    json lines = json::array();
    for (ChartLine& line : chart.lines) {
      std::erase_if(line.points, [](const auto& point) {
        return !std::isfinite(point.first) || !std::isfinite(point.second);
      });
      if (line.points.empty()) continue;
      lines.push_back({{"name", line.name},
                       {"points", points_json(line.points)},
                       {"color", line.color},
                       {"faint", line.faint}});
    }
    if (lines.empty()) continue;
    result.push_back({{"title", chart.title}, {"shares", chart.shares}, {"lines", lines}});
  }
  return result;
}

}  // namespace tandem
