// A folder of pictures 0.png, 1.png, ... and lists of them, for tests of what lists say.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/data/image_data.h"

namespace tandem::test {

class ListFixture : public testing::Test {
 protected:
  using Texts = std::vector<std::string>;
  using Values = std::vector<float>;

  void SetUp() override {
    const std::string png = encoded(".png", gradient(9, 9));
    for (int i = 0; i < 24; ++i) (void)folder_.write(std::to_string(i) + ".png", png);
  }
  // Of a list with this text; nothing of it is held out.
  [[nodiscard]] DatasetOptions list(const std::string& text, Parameters parameters = {}) const {
    DatasetOptions result = image_options(folder_.write("l.csv", text).string());
    parameters.emplace("val_fraction", "0");
    result.parameters = std::move(parameters);
    return result;
  }
  // `count` lines, or one for each text, of which each has the next one.
  [[nodiscard]] DatasetOptions options(const std::string& heading, const Texts& texts,
                                       Parameters parameters = {}, size_t count = 0,
                                       char separator = ',') const {
    std::string text = heading.empty() ? "" : heading + "\n";
    for (size_t i = 0; i < std::max(count, texts.size()); ++i) {
      text += std::to_string(i) + ".png" + separator + texts[i % texts.size()] + "\n";
    }
    return list(text, std::move(parameters));
  }
  static Values values(const Dataset& data, int64_t index) {
    Values result(size_t(data.class_count()));
    data.values(index, result.data());
    return result;
  }

  TempFolder folder_;
};

}  // namespace tandem::test
