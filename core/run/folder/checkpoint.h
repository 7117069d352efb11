// Checkpoints: the weights of a net in NAME.safetensors and, beside it in NAME.state.safetensors,
// what a run needs to go on as if never stopped. The pair is replaced as one: after a kill at any
// moment complete_pairs() leaves the old pair or the new one, and the weights alone always load.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/model/net/net.h"

namespace tandem {

struct Checkpoint {
  int64_t step = 0;            // steps done
  std::vector<float> weights;  // the net's whole weight array
  std::vector<float> state;    // the solver's arrays, one after the other; may be empty
  std::map<std::string, std::string> metadata;  // of the state file: seed, best metric, ...
};

// Error if it cannot be written (disk full, not writable); the old pair is then untouched. `others`
// are further names of the same pair: hard links, which need no space, or copies on file systems
// without them. Links are there when `name` is, copies after it.
void write_checkpoint(const std::filesystem::path& folder, const std::string& name, const Net& net,
                      const Checkpoint& checkpoint, const std::vector<std::string>& others = {});
// A kill between the two renames of a pair leaves new state beside old weights or none, and the new
// weights complete under their pending name. This renames them. Only for the run itself, which has
// the folder locked.
void complete_pairs(const std::filesystem::path& folder);
// Gives the pair `name` those of the further names that its files do not have: a failure may have
// come after `name` was written and before they were.
void complete_names(const std::filesystem::path& folder, const std::string& name,
                    const std::vector<std::string>& others);
// `with_state` false reads only the weights. Error names the file and what is wrong: missing,
// truncated, of another net (the first array that is missing, superfluous or of another shape).
[[nodiscard]] Checkpoint read_checkpoint(const std::filesystem::path& folder,
                                         const std::string& name, const Net& net, bool with_state);
// Sizes as safetensors files of ours have them: without trailing ones.
[[nodiscard]] std::vector<int64_t> file_shape(const Shape& shape);
// The steps done before NAME.safetensors was written; -1 where it does not say it. Error if it
// cannot be read.
[[nodiscard]] int64_t checkpoint_step(const std::filesystem::path& folder, const std::string& name);
// NAME.safetensors.
[[nodiscard]] std::filesystem::path weights_file(const std::filesystem::path& folder,
                                                 const std::string& name);
[[nodiscard]] bool has_checkpoint(const std::filesystem::path& folder, const std::string& name);
// Weights in a run folder that has no last checkpoint: the best ones, else those of the last
// snapshot by name. Empty: there are none, so that nothing is lost with the folder.
[[nodiscard]] std::filesystem::path weights_without_last(const std::filesystem::path& folder);
// The pair that a run's user means by "best" (else last) or "last". Error for another word, and for
// a run without it.
[[nodiscard]] std::string checkpoint_name(const std::filesystem::path& folder,
                                          const std::string& which);
// Whether both files of the pair can be read and are of this step.
[[nodiscard]] bool is_checkpoint_of(const std::filesystem::path& folder, const std::string& name,
                                    int64_t step);

}  // namespace tandem
