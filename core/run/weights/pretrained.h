// Weights of another training, for the layers of a net that have the same names: to fine-tune, or
// to use a net published for Caffe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/formats/arrays.h"
#include "core/model/file/name_rules.h"
#include "core/model/net/net.h"

namespace tandem {

class ArrayReader;

// What --weights takes, for messages.
constexpr const char* weight_formats =
    ".safetensors, a state dict of PyTorch (.pth, .pt, .bin) or .caffemodel";

struct Pretrained {
  std::vector<std::string> copied;   // layers of the net whose weights came from the file
  std::vector<std::string> missing;  // layers of the net that keep their initial values
  std::vector<std::string> unused;   // layers of the file that the net does not have
  std::string note;                  // what was chosen in the file; or ""
};

// Copies into `values`, the net's whole weight array, what `path` has for layers of the same name;
// the formats are distinguished by content. Throws Error and changes
// nothing for a file that is missing, truncated or damaged, a layer whose arrays do not fit, and a
// file that has no layer of the net.
[[nodiscard]] Pretrained read_pretrained(const std::filesystem::path& path, const Net& net,
                                         std::vector<float>* values);
// Whether a program of Tandem's has written it.
[[nodiscard]] bool is_of_tandem(const ArrayFile& file);
// The file's arrays under the names that the rules give, without those of the rule "NAME -". The
// first rule that fits counts. Throws Error for two arrays of one name, which names `path`.
[[nodiscard]] ArrayFile with_names_of_net(const std::filesystem::path& path, ArrayFile file,
                                          const std::vector<NameRule>& rules);
// Reads the values of those arrays that the net has, after the shapes of all were found to fit.
void read_values(const ArrayReader& reader, const std::filesystem::path& path, const Net& net,
                 ArrayFile* file);
// As read_pretrained(), with arrays that were read from the file already.
[[nodiscard]] Pretrained copy_arrays(ArrayFile file, const std::filesystem::path& path,
                                     const Net& net, std::vector<float>* values);
// Lines: how many layers were copied, and the names of those that were not.
[[nodiscard]] std::string to_text(const Pretrained& report, const std::filesystem::path& path);

}  // namespace tandem
