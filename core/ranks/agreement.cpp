#include "core/ranks/agreement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace tandem {

using nlohmann::json;

void require_same_samples(const Fingerprint& of_root, const Dataset& dataset,
                          const std::string& data, const std::string& split) {
  const Fingerprint mine = fingerprint_of(dataset, file_states(dataset));
  const std::string differs = difference(of_root, mine, dataset, "there");
  if (differs.empty()) return;
  throw error("the data in '{}' (split '{}') are not those of rank 0: {}", data, split, differs);
}

KernelChoices share_choices(const Communicator& ranks, int from, const KernelChoices& mine) {
  constexpr const char* what = "the algorithms that it has measured";
  std::string text = ranks.rank() == from ? json(mine).dump() : "";
  if (from != 0 && ranks.rank() == from) ranks.send_text(0, text, what);
  if (from != 0 && ranks.rank() == 0) text = ranks.receive_text(from, what);
  const std::string of_all = fmt::format("the algorithms that rank {} has measured", from);
  return json::parse(ranks.broadcast_text(text, of_all.c_str())).get<KernelChoices>();
}

std::vector<BadSample> gather_bad_samples(const Communicator& ranks,
                                          const std::vector<BadSample>& mine) {
  constexpr const char* what = "the names of the damaged images that it has met";
  json own = json::array();
  for (const BadSample& sample : mine) own.push_back(json::array({sample.name, sample.reason}));
  std::vector<BadSample> all = mine;
  if (ranks.rank() != 0) {
    ranks.send_text(0, own.dump(-1, ' ', false, json::error_handler_t::replace), what);
    return all;
  }
  for (int peer = 1; peer < ranks.size(); ++peer) {
    for (const json& one : json::parse(ranks.receive_text(peer, what))) {
      all.push_back({one.at(0).get<std::string>(), one.at(1).get<std::string>()});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const BadSample& a, const BadSample& b) { return a.name < b.name; });
  const auto is_same = [](const BadSample& a, const BadSample& b) { return a.name == b.name; };
  all.erase(std::unique(all.begin(), all.end(), is_same), all.end());
  return all;
}

int64_t BatchAgreement::agree(float* labels, int64_t rows) {
  std::vector<float> message(static_cast<size_t>(rows) + 1);  // labels, and whether it stops
  const auto bytes = static_cast<int64_t>(message.size() * sizeof(float));
  std::array<int64_t, 2> word{0, stop_ != nullptr && *stop_ ? 1 : 0};
  constexpr const char* what = "the labels of a batch";
  if (ranks_.rank() == 0) {
    for (int peer = 1; peer < ranks_.size(); ++peer) {
      ranks_.receive(peer, message.data(), bytes, what);
      for (int64_t row = 0; row < rows; ++row) {
        if (std::isnan(labels[row])) labels[row] = message[size_t(row)];
      }
      if (message.back() != 0) word[1] = 1;
    }
    word[0] = std::count_if(labels, labels + rows, [](float label) { return label >= 0; });
  } else {
    std::copy(labels, labels + rows, message.begin());
    message.back() = static_cast<float>(word[1]);
    ranks_.send(0, message.data(), bytes, what);
  }
  ranks_.broadcast(word.data(), sizeof(word), "the size of a batch");
  stopping_ = word[1] != 0;
  return word[0];
}

}  // namespace tandem
