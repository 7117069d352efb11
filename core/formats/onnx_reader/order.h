// The order of an ONNX file's nodes. The format wants each after those whose results it reads, but
// some converters append nodes, as casts of half precision, and runtimes sort them. So does this.
#pragma once

#include "core/formats/onnx_reader/file.h"

namespace tandem {

// Nodes that are in order stay as they are. Error in one line for a value that is read and missing,
// one that is made twice, and a cycle.
void sort_nodes(OnnxFile& file);

}  // namespace tandem
