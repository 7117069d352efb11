// Tandem as a library: everything that a program may use.
//
//   tandem::TrainOptions options;
//   options.data = "flowers";
//   options.net = "cifar10_quick";
//   options.devices = "cpu:2";
//   tandem::Observer quiet;
//   const tandem::TrainResult result = tandem::train(options, quiet);
//   tandem::Predictor predictor(result.run);
//   for (const tandem::Prediction& p : predictor.predict({"a.jpg"})) {
//     std::cout << p.path << ": " << p.scores[0].name << "\n";
//   }
#pragma once

#include "data.h"
#include "devices.h"
#include "error.h"
#include "evaluate.h"
#include "net.h"
#include "observer.h"
#include "plugins.h"
#include "predict.h"
#include "process.h"
#include "profile.h"
#include "strategies.h"
#include "train.h"
