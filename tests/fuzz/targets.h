// Fuzz targets: each reads any bytes as one format of users' files, and returns. What the reader
// refuses is an Error or a Refusal with one message, which is checked here; what it accepts and
// can write again must read the same. libfuzzer/main.cpp runs a target for libFuzzer, and
// replay_test.cpp runs all of them over the files of corpus/.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/model/net/net.h"
#include "core/plugin/registry.h"

namespace tandem::fuzz {

using Target = void (*)(std::string_view bytes);

void caffemodel(std::string_view bytes);
void checkpoint(std::string_view bytes);
void cifar(std::string_view bytes);
void class_names(std::string_view bytes);
void class_weights(std::string_view bytes);
void costs(std::string_view bytes);
void idx(std::string_view bytes);
void metrics(std::string_view bytes);
void name_rules(std::string_view bytes);
void net(std::string_view bytes);
void onnx(std::string_view bytes);
void options(std::string_view bytes);
void pretrained(std::string_view bytes);
void run_record(std::string_view bytes);
void safetensors(std::string_view bytes);
void solver(std::string_view bytes);
void tables(std::string_view bytes);
void timm_config(std::string_view bytes);
void topology(std::string_view bytes);
void torch_file(std::string_view bytes);

// By name; those of all builds. images/images.h has more, which need the image libraries.
[[nodiscard]] const std::map<std::string, Target>& targets();

// Calls the reader. True if it returned; false if it refused, with a message that is checked. Any
// other exception passes through, which is a finding.
bool accepts(const std::function<void()>& reader);
// Of a refusal: it must be there, and no longer than a few screens.
void check_message(const std::string& message);
// Ends the process with the message: what was written does not read the same.
[[noreturn]] void fail(const std::string& what);

// The bytes as a file of that name, in a folder of this process. The next call with the name
// replaces it.
[[nodiscard]] std::filesystem::path file_of(const std::string& name, std::string_view bytes);

// The built-in layers and data sets.
[[nodiscard]] Registry& registry();
// A net with a convolution, batch normalization and an InnerProduct, 60 weights in all.
[[nodiscard]] const Net& small_net();

}  // namespace tandem::fuzz
