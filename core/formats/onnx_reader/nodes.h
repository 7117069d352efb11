// A file's nodes as later stages want them: in an order in which they can be computed, and without
// operators of ONNX Runtime's own.
#pragma once

#include "core/formats/onnx_reader/file.h"

namespace tandem {

// Puts the nodes that operators of "com.microsoft" stand for in their place: ONNX Runtime writes
// several nodes as one when it saves a graph that it has optimized (FusedConv, BiasGelu). Others of
// that domain stay, and so do those with an activation that is not known.
void divide_fused_nodes(OnnxFile& file);

// The format wants each node after those whose results it reads, but some converters append nodes,
// as casts of half precision, and runtimes sort them. So does this; nodes that are in order stay as
// they are. Error in one line for a value that is read and missing, one that is made twice, and a
// cycle.
void sort_nodes(OnnxFile& file);

}  // namespace tandem
