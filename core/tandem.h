// Tandem as a library: what a C++ program needs to train on a folder of images, test, predict, and
// build a net.
//
//   tandem::TrainOptions options;
//   options.data = "flowers";
//   options.net = "cifar10_quick";
//   options.devices = "cpu:2";
//   tandem::Observer quiet;
//   const tandem::TrainResult result = tandem::train(options, quiet);
//   tandem::Predictor predictor(result.run);
//   for (const auto& p : predictor.predict({"a.jpg"})) fmt::print("{}: {}\n", p.path,
//   p.scores[0].name);
#pragma once

#include "core/model/net_writer.h"
#include "core/train/measure.h"
#include "core/train/observer.h"
#include "core/train/options.h"
#include "core/train/predict.h"
#include "core/train/trainer.h"
