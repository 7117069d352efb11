// The data set "cifar10_binary": CIFAR-10 in its authors' binary form. Records of 3073 bytes, the
// class (0 to 9) and 32x32 pixels as planes of R, G, B
// (https://www.cs.toronto.edu/~kriz/cifar.html). A folder with data_batch_1.bin ... and
// test_batch.bin, or one such file. Validation pictures are held out of the training ones, and test
// pictures are the same if there is no test file. All of a file that is named like a test file is
// its test split.
#pragma once

#include "datasets/picture/raw_pictures.h"

namespace tandem::cifar10_binary {

class Cifar10Binary : public picture::RawPictures {
 public:
  Cifar10Binary(const tandem_dataset_request& request, const sdk::Attributes& attributes);

  static const char* name() { return "cifar10_binary"; }
  static const char* help() { return "CIFAR-10 in binary files: data_batch_1.bin, ..."; }
  static std::vector<sdk::Parameter> parameters() { return parameters_of("cifar10_binary_param"); }
  // A folder with data_batch_1.bin in it, or a file called .bin whose size is that of records.
  static bool recognizes(const std::string& source);

 private:
  void read_file(const std::string& path, size_t class_count);
};

}  // namespace tandem::cifar10_binary
