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

#include "tandem/data.h"
#include "tandem/devices.h"
#include "tandem/error.h"
#include "tandem/evaluate.h"
#include "tandem/net.h"
#include "tandem/observer.h"
#include "tandem/plugins.h"
#include "tandem/predict.h"
#include "tandem/profile.h"
#include "tandem/strategies.h"
#include "tandem/train.h"
