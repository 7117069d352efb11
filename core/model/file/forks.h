// Layer types and fields of other Caffes (branches of vendors, SSD, SegNet, Ristretto, and layers
// that are passed around), which no file of Caffe's own has: what is written here in their place. A
// form with the same meaning is translated, a field that changes no result is left out and named,
// and everything else is refused with a hint.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/model/file/text_format.h"

namespace tandem {

// What is written here in place of the type or field; "" if it is not known. `block`: "net",
// "solver", "" for the layer itself, or the name of a block.
[[nodiscard]] std::string hint_of_type(const std::string& type);
[[nodiscard]] std::string hint_of_field(const std::string& block, const std::string& field);

// What was read in another way than it is written in one file, for notes.
class ReadOtherwise {
 public:
  void add(const std::string& what, const Location& location);
  // A field that changes no result, and why.
  void leave_out(const std::string& field, const std::string& why, const Location& location);
  // "data_param.backend, data_param.source are not used: --data names the data (net.prototxt:12),
  // and 4 times more"
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  struct Uses {
    Location first;
    std::set<std::string> fields;
    int more = 0;
  };
  std::map<std::string, Uses> uses_;
};

// Leaves out the fields that change no result. `block` as above.
void leave_out_unused(Message& message, const std::string& block, ReadOtherwise& read);
// The same of a layer in the current form and its blocks, after translating it.
void translate_forks(Message& layer, ReadOtherwise& read);

}  // namespace tandem
