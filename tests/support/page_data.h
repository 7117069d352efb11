// What an HTML page of the program says: the JSON in it, which its script draws.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace tandem::test {

inline nlohmann::json page_data(const std::string& page) {
  const std::string begin = "<script id=data type=\"application/json\">";
  const size_t at = page.find(begin);
  if (at == std::string::npos) {
    ADD_FAILURE() << "a page without data: " << page.substr(0, 200);
    return {};
  }
  const size_t first = at + begin.size();
  return nlohmann::json::parse(page.substr(first, page.find("</script>", first) - first));
}

}  // namespace tandem::test
