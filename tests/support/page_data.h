// What an HTML page of the program says: the JSON in it, which its script draws.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/report/page/page.h"

namespace tandem::test {

inline nlohmann::json page_data(const std::string& page) {
  nlohmann::json data = tandem::page_data(page);
  if (data.is_null()) ADD_FAILURE() << "a page without data: " << page.substr(0, 200);
  return data;
}

}  // namespace tandem::test
