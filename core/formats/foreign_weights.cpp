#include "core/formats/foreign_weights.h"

#include <array>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/foreign_file.h"

namespace tandem {
namespace {

using namespace std::string_view_literals;

constexpr const char* to_onnx = "export the model as ONNX, and give that file";
constexpr const char* of_keras =
    "export the model as ONNX (tf2onnx, or model.export() of Keras), and give that file";
constexpr const char* of_torch =
    "save the weights alone with torch.save(model.state_dict(), 'weights.pth')";
constexpr const char* again = "download the file itself";

using Form = ForeignFile;
constexpr std::array forms{
    Form{"a pointer of Git LFS, not the weights", "version https://git-lfs"sv, 0, "",
         "fetch them with 'git lfs pull'"},
    Form{"a web page, not the weights", "<!DOCTYPE"sv, 0, "", again},
    Form{"a web page, not the weights", "<!doctype"sv, 0, "", again},
    Form{"a web page, not the weights", "<html"sv, 0, "", again},
    Form{"an HDF5 file, as Keras writes them", "\x89HDF\r\n\x1a\n"sv, 0, "", of_keras},
    Form{"a file of Keras", ""sv, 0, ".keras", of_keras},
    Form{"a file of TensorFlow Lite", "TFL3"sv, 4, "", to_onnx},
    Form{"a graph of TensorFlow", ""sv, 0, ".pb", of_keras},
    Form{"a part of a checkpoint of TensorFlow", ""sv, 0, ".index", of_keras},
    Form{"a part of a checkpoint of TensorFlow", ""sv, 0, ".data-00000-of-00001", of_keras},
    Form{"a file of arrays of NumPy", ""sv, 0, ".npz", "write them as safetensors, by their names"},
    Form{"an array of NumPy", "\x93NUMPY"sv, 0, "", "write it as safetensors, by its name"},
    Form{"a file of MXNet", ""sv, 0, ".params", to_onnx},
    Form{"a file of Darknet", ""sv, 0, ".weights", to_onnx},
    Form{"an engine of TensorRT, made for one GPU", ""sv, 0, ".engine", to_onnx},
    Form{"a solver's state of Caffe", ""sv, 0, ".solverstate",
         "give the .caffemodel beside it; a run of this program goes on with --resume"},
    Form{"a file of pickled Python objects, whose code is not run", "\x80\x02"sv, 0, "", of_torch},
    Form{"a file of pickled Python objects, whose code is not run", "\x80\x03"sv, 0, "", of_torch},
    Form{"a file of pickled Python objects, whose code is not run", "\x80\x04"sv, 0, "", of_torch},
    Form{"a file of pickled Python objects, whose code is not run", "\x80\x05"sv, 0, "", of_torch},
};

}  // namespace

std::string foreign_weights(const std::filesystem::path& path) {
  std::string head(64, '\0');
  try {
    head.resize(InputFile(path).read(0, head.data(), head.size()));
  } catch (const Error&) {
    return "";
  }
  // A file of torch.save() in its old form is a pickle, too, which begins with this number.
  if (head.find("\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") != std::string::npos) return "";
  if (head.size() > 8 && head[8] == '{') return "";  // safetensors, whose first bytes are a length
  const std::string name = path.filename().string();
  const bool is_zip = head.starts_with("PK\3\4");  // as torch.save() writes, whatever its name
  for (const Form& form : forms) {
    const std::string_view ending = form.ending;
    const bool is_named = !ending.empty() && name.ends_with(ending) &&
                          (!is_zip || ending == ".keras" || ending == ".npz") &&
                          (!head.starts_with('\n') || ending == ".pb");  // or a .caffemodel
    if (is_named || form.is_begun_by(head)) return form.text();
  }
  return "";
}

}  // namespace tandem
