// Where the paths of a list lead: below its own folder, or below the one that is given. Absolute
// paths are taken as they are, below that folder as Caffe joins the two, or, of another machine,
// where their ends are found.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "datasets/image_folder/list_file.h"
#include "datasets/image_folder/listing.h"

namespace tandem::image_folder {

class ListRoot {
 public:
  // `given`: the folder where paths begin; "": that of each list.
  explicit ListRoot(std::string given) : given_(std::move(given)) {}

  [[nodiscard]] std::filesystem::path folder_of(const std::string& file) const;

  // Looks the first paths of a list up, and notes how absolute ones are taken.
  void look_at(const ListFile& list, Listing& listing);
  // Of an entry of the list that was looked at.
  [[nodiscard]] std::string path_of(const ListEntry& entry) const;
  // The file of each line of that list as it is on the disk, the same text for the same file.
  [[nodiscard]] std::vector<std::string> files_of(const ListFile& list) const;

  // Refusal if none of the first images is there. Single missing ones are skipped later; if all
  // are missing, the paths begin elsewhere. `file`: the list.
  void require_some(const std::vector<Image>& images, const std::string& file) const;

 private:
  [[nodiscard]] bool joins_root(const ListFile& list) const;
  void find_moved(const ListFile& list, Listing& listing);

  std::string given_;
  std::filesystem::path folder_;  // of the list that was looked at
  bool joins_root_ = false;
  std::string moved_;  // the beginning of paths of another machine; "": there are none
};

}  // namespace tandem::image_folder
