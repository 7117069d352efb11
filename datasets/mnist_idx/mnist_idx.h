// The data set "mnist_idx": gray pictures in IDX files, as MNIST and its kin come
// (http://yann.lecun.com/exdb/mnist). A folder with train-images-idx3-ubyte and
// train-labels-idx1-ubyte (and t10k-... or test-...), or the file of pictures with that of labels
// beside it. Validation pictures are held out of the training ones, and test pictures are the same
// if there is no test file. All of a file that is named like a test file is its test split.
#pragma once

#include "datasets/picture/raw_pictures.h"

namespace tandem::mnist_idx {

class MnistIdx : public picture::RawPictures {
 public:
  MnistIdx(const tandem_dataset_request& request, const sdk::Attributes& attributes);

  static const char* name() { return "mnist_idx"; }
  static const char* help() { return "MNIST in IDX files: train-images-idx3-ubyte, ..."; }
  static std::vector<sdk::Parameter> parameters() { return parameters_of("mnist_idx_param"); }
  // A folder with such a file of training pictures, or a file that begins as one.
  static bool recognizes(const std::string& source);

 private:
  struct Pictures {
    int64_t count = 0;
    int height = 0, width = 0;
  };
  Pictures read_pictures(const std::string& path);
  // With the labels of the file `labels`.
  void read_samples(const Pictures& pictures, const std::string& labels);
};

}  // namespace tandem::mnist_idx
