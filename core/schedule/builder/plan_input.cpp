// The part of the plan builder that brings a batch to the devices.
#include <fmt/format.h>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {

std::string PlanBuilder::input_label(const char* what, int shard) const {
  const std::string& name = shards_[size_t(shard)].name;
  return fmt::format("{} {}{}input @{}", what, name, name.empty() ? "" : " ", device_of(shard));
}

void PlanBuilder::emit_input(int shard, bool with_data) {
  const Interval mine = rows(shard);
  const BatchLayout global = global_layout(), local = batch_layout(mine.count());
  const int from = buffer({buffers::batch, TANDEM_HOST, BufferKind::external, global.bytes, 1, {}});
  const int to = input(shard).buffer;
  // A row's `row_bytes` of all rows, which begin there in the batch.
  const auto my_rows = [&](int64_t begin, int64_t row_bytes) {
    return Region{from, begin + mine.begin * row_bytes, mine.count() * row_bytes};
  };
  const auto copy_to = [&](int64_t begin, const Region& source) {
    return CopySegment{source, {to, begin, source.bytes}};
  };
  std::vector<CopySegment> segments{
      copy_to(0, {from, 0, sizeof(tandem_step)}),
      copy_to(local.label_offset, my_rows(global.label_offset, sizeof(float)))};
  const Region data = my_rows(global.data_offset, global.sample_bytes);
  Region pixels;
  if (with_data && inputs_.bytes) {
    pixels = {buffer(at(shard, buffers::pixels, data.bytes)), 0, data.bytes};
    segments.push_back({data, pixels});
  } else if (with_data) {
    segments.push_back(copy_to(local.data_offset, data));
  }
  for (size_t i = 0; with_data && i < global.more.size(); ++i) {
    const int64_t row_bytes = element_count(global.more[i]) * 4;
    segments.push_back(copy_to(local.more_offsets[i], my_rows(global.more_offsets[i], row_bytes)));
  }
  emit_copy(input_label("copy", shard), Stage::input, -1, {{device_of(shard), StreamKind::copy}},
            std::move(segments));
  if (pixels.buffer < 0) return;
  emit_conversion(shard, pixels, {to, local.data_offset, mine.count() * local.sample_bytes});
}

// On the stream that copied them: the pixels' memory is free again before the next batch comes.
void PlanBuilder::emit_conversion(int shard, const Region& pixels, const Region& target) {
  ConvertWork work{batch_layout(1).sample, pixels, target, *inputs_.bytes};
  work.shape.n = rows(shard).count();
  Task task;
  task.label = input_label("convert", shard);
  task.stage = Stage::input;
  task.streams = {{device_of(shard), StreamKind::copy}};
  task.reads = {pixels};
  task.writes = {target};
  task.work = work;
  emit(std::move(task));
}

}  // namespace tandem
