#include "tests/fuzz/targets.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/model/passes/build_net.h"

namespace tandem::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t max_of_a_message = 16384;

// In memory where there is such a folder: a target writes its file thousands of times a second.
class Folder {
 public:
  Folder() {
    const fs::path memory = "/dev/shm";
    std::error_code ignored;
    const fs::path parent = fs::is_directory(memory, ignored) ? memory : fs::temp_directory_path();
    std::string pattern = (parent / "tandem-fuzz-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

const char* const small_net_text = R"(
layer { name: 'data' type: 'Data' top: 'data' top: 'label' }
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
  convolution_param { num_output: 2 kernel_size: 2 } }
layer { name: 'norm' type: 'BatchNorm' bottom: 'conv' top: 'conv' }
layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip'
  inner_product_param { num_output: 3 } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }
)";

}  // namespace

const std::map<std::string, Target>& targets() {
  static const std::map<std::string, Target> all{{"caffemodel", caffemodel},
                                                 {"checkpoint", checkpoint},
                                                 {"cifar", cifar},
                                                 {"class_names", class_names},
                                                 {"name_rules", name_rules},
                                                 {"timm_config", timm_config},
                                                 {"torch_file", torch_file},
                                                 {"class_weights", class_weights},
                                                 {"costs", costs},
                                                 {"idx", idx},
                                                 {"metrics", metrics},
                                                 {"net", net},
                                                 {"onnx", onnx},
                                                 {"options", options},
                                                 {"pretrained", pretrained},
                                                 {"run_record", run_record},
                                                 {"safetensors", safetensors},
                                                 {"solver", solver},
                                                 {"tables", tables},
                                                 {"topology", topology}};
  return all;
}

bool accepts(const std::function<void()>& reader) {
  try {
    reader();
    return true;
  } catch (const Error& refusal) {
    check_message(refusal.what());
  }
  return false;
}

void check_message(const std::string& message) {
  if (message.empty()) fail("a refusal without a message");
  if (message.size() > max_of_a_message) {
    fail(fmt::format("a message of {} bytes: {}", message.size(), message.substr(0, 200)));
  }
}

void fail(const std::string& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

fs::path file_of(const std::string& name, std::string_view bytes) {
  static const Folder folder;
  const fs::path path = folder.path() / name;
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
  return path;
}

Registry& registry() {
  static Registry all = [] {
    Registry loaded = Registry::with_defaults();
    if (loaded.layer_types().empty()) throw std::runtime_error("no layers: build the plugins");
    return loaded;
  }();
  return all;
}

const Net& small_net() {
  static const Net net = [] {
    NetOptions options;
    options.batch = 2;
    options.data = {1, 3, 4, 4};
    options.device_kind = "";
    return build_net(read_net_text(small_net_text), registry(), options);
  }();
  return net;
}

}  // namespace tandem::fuzz
