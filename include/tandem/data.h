// What a data set holds, without training on it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tandem {

struct DataInfo {
  std::vector<std::string> class_names;
  int64_t training_samples = 0;
};

// `source` and `parameters` as TrainOptions::data and data_parameters. Throws Error for data that
// cannot be trained on.
[[nodiscard]] DataInfo read_data_info(const std::string& source,
                                      const std::map<std::string, std::string>& parameters = {});

}  // namespace tandem
