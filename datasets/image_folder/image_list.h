// The data set "image_list": pictures named in text files. Either Caffe's lists, "path label" on
// each line with the class's number, or CSV, "path,label" with its name, with a heading or without,
// and perhaps a third column "split". A file's pictures are split as those of a folder are; a
// folder with train.txt and val.txt (or .csv, and test) has a list for each split.
#pragma once

#include "datasets/image_folder/image_set.h"

namespace tandem::image_folder {

class ImageList : public ImageSet {
 public:
  ImageList(const tandem_dataset_request& request, const sdk::Attributes& attributes);

  static const char* name() { return "image_list"; }
  static const char* help() {
    return "images named in a text file: Caffe's 'path label', or CSV with path,label[,split]";
  }
  static std::vector<sdk::Parameter> parameters();
  // A file called .txt, .lst, .list or .csv, or a folder with train.txt or train.csv in it.
  static bool recognizes(const std::string& source);
};

}  // namespace tandem::image_folder
