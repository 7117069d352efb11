// The largest errors that tests see, as properties of their results (--gtest_output=json).
// tests/reference/max_errors.py prints them as the tables of docs/reports/exactness.md.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace tandem::test {

// `key` is the name of a layer or an algorithm, a space, and the name of a result without spaces.
inline void record_error(const std::string& key, double error) {
  static std::map<std::string, double> largest;
  double& known = largest[key];
  known = std::max(known, error);
  testing::Test::RecordProperty(key, fmt::format("{:.1e}", known));
}

}  // namespace tandem::test
