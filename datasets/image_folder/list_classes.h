// The classes of the lists of one data set: their names, which the model, a file of names or the
// training list gives, and the number of each line's class.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "datasets/image_folder/label_form.h"
#include "datasets/image_folder/listing.h"

namespace tandem::image_folder {

class ListClasses {
 public:
  // `file`: with a name of a class on each line, "": none; `of_model`: the names of a model, or
  // none. The listing gets the names, and outlives this. Refusal for a file of other content.
  ListClasses(std::string file, std::vector<std::string> of_model, Listing& listing);

  // Of the file, in its order.
  [[nodiscard]] const std::vector<std::string>& written_names() const { return written_names_; }

  // Names the classes, labels or numbers, and numbers classes as the model does or as the training
  // list. Refusal for a single class.
  void name(const LabelForm& form, const ListFile& train);
  // After name(): finds out whether a list says yes and no in other words than the two classes do,
  // as true and false, 1 and 0, and notes what is taken for what.
  void match_words(const LabelForm& form, const ListFile& list);
  // The number of an entry's class, after name(); 0 of another task. Refusal for an unknown class.
  [[nodiscard]] int64_t label_of(const LabelForm& form, const ListFile& list,
                                 const ListEntry& entry) const;

 private:
  [[nodiscard]] std::string name_of(const LabelForm& form, const ListFile& list,
                                    const ListEntry& entry) const;
  [[nodiscard]] std::vector<std::string> names_of(const LabelForm& form, const ListFile& train);

  const std::string file_;
  const std::vector<std::string> of_model_;
  Listing& listing_;
  std::vector<std::string> written_names_;
  bool has_numbers_ = false;  // the classes of the training list are written as numbers
  std::unordered_map<std::string, int64_t> numbers_, words_;  // by name; by other words for it
};

}  // namespace tandem::image_folder
