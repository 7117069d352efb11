// The data set "image_list": pictures named in text files. Either Caffe's lists, "path label" on
// each line with the number of the class, or CSV, "path,label" with its name, with or without a
// heading and a third column "split". In place of a class a line may have several labels, or
// numbers (label_form.h). The pictures of one file are split as those of a folder; a folder with
// train.txt and val.txt (or .csv, and test) has a list for each split. Refusal (TANDEM_INVALID) for
// whatever is wrong with the lists.
#pragma once

#include "datasets/image_folder/image_set.h"
#include "datasets/image_folder/pack_writer.h"

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
  static void pack(const tandem_pack_request& request) { write_pack_of<ImageList>(request); }
};

}  // namespace tandem::image_folder
