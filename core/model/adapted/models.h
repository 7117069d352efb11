// Finds nets by name: the models' folders are TANDEM_MODEL_PATH (separated by colons) and the
// share/tandem/models of the program and of the library. A build tree links them to
// examples/models.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/model/file/definition.h"

namespace tandem {

// The file of a model ("alexnet"), of an architecture of published weights ("resnet34") or, for a
// path, the path itself. Error with near names if there is none of these.
[[nodiscard]] std::filesystem::path find_net(const std::string& name_or_path);
// The net in that file; an architecture's with the `eps` of its BatchNorm.
[[nodiscard]] NetDefinition read_model(const std::string& name_or_path);
[[nodiscard]] std::vector<std::string> model_names();  // the built-in ones
[[nodiscard]] std::string no_models();  // says where they were looked for, and what to do
// The net of published weights of this architecture ("resnet50"), in the folder "pretrained" of the
// models' folders; "" if there is none. It may be that of another name, by the file NAME.names.
[[nodiscard]] std::filesystem::path find_pretrained_net(const std::string& architecture);
[[nodiscard]] std::vector<std::string> pretrained_net_names();
// " (did you mean 'resnet18'?)", or "": another number makes another model, and no typing error.
[[nodiscard]] std::string near_model(const std::string& name,
                                     const std::vector<std::string>& known);
// The names of this architecture's arrays in another program, in the same folder; or "".
[[nodiscard]] std::filesystem::path find_pretrained_names(const std::string& architecture);
[[nodiscard]] bool is_model_name(const std::string& name_or_path);  // of a built-in one
// The model whose file has this name in it ("ResNet-18"), as a copy of the file has; "": none.
[[nodiscard]] std::string model_of_net(const std::string& net_name);

}  // namespace tandem
