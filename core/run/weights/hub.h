// Weights of Hugging Face's hub, by the name of their repository ("timm/resnet18.a1_in1k"): what
// was fetched lies in a cache, as a folder like timm's own, and is used from there. Nothing is
// downloaded unless that was asked for. HF_ENDPOINT names another hub, HF_TOKEN is a key for
// repositories that are not public.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

// Whether the text can be the name of a repository: OWNER/NAME, or OWNER/NAME@REVISION.
[[nodiscard]] bool is_repository_name(const std::string& text);

// The folder in the cache ($XDG_CACHE_HOME/tandem, or ~/.cache/tandem) for this repository. Error
// without a home folder.
[[nodiscard]] std::filesystem::path cached_folder(const std::string& repository);
// The folders in the cache that have all that was fetched into them, the newest first.
[[nodiscard]] std::vector<std::filesystem::path> cached_folders();
// A repository that has weights of this architecture; "" where none is known.
[[nodiscard]] std::string example_repository(const std::string& architecture);
// Whether that folder has all that was to be fetched.
[[nodiscard]] bool is_cached(const std::string& repository);

// Downloads configuration and weights of a repository into its folder of the cache, and returns
// a line on what was done; `note` gets one before each file. A file has its name only when it is
// whole: its size and, where the hub names it, its SHA-256 were compared. What an interrupted
// download has left is continued. Error in one line for anything else.
[[nodiscard]] std::string fetch_repository(
    const std::string& repository, const std::function<void(const std::string&)>& note = nullptr);

}  // namespace tandem
