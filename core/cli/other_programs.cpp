#include "core/cli/other_programs.h"

#include <algorithm>

namespace tandem::cli {

std::string command_of_other_program(const std::string& name) {
  static const std::map<std::string, std::string> commands{{"fit", "train"},
                                                           {"val", "test"},
                                                           {"validate", "test"},
                                                           {"eval", "test"},
                                                           {"evaluate", "test"},
                                                           {"infer", "predict"},
                                                           {"classification", "predict"},
                                                           {"time", "profile"},
                                                           {"benchmark", "profile"},
                                                           {"summary", "net"},
                                                           {"tune", "search"},
                                                           {"lr_find", "train --find-lr"},
                                                           {"resume", "train --resume --out RUN"},
                                                           {"fine_tune", "train --weights"},
                                                           {"finetune", "train --weights"},
                                                           {"device_query", "devices"},
                                                           {"checks", "devices"},
                                                           {"version", "--version"},
                                                           {"convert_imageset", "pack"},
                                                           {"draw_net", "net --dot FILE"},
                                                           {"upgrade_net_proto_text", "net"},
                                                           {"compute_image_mean", "data"}};
  static const std::map<std::string, std::string> texts{
      {"report",
       "training and 'test' write report.html in the run folder; 'compare' shows several "
       "runs"},
      {"parse_log", "a run folder has metrics.csv and report.html; 'compare' shows several runs"},
      {"caffe", "leave the word out: 'tandem train --solver FILE --data PATH'"},
      {"classify",
       "leave the word out, as images get classes here: 'tandem train --data FOLDER', "
       "'tandem test --run RUN', 'tandem predict --run RUN IMAGES'"}};
  const auto same = [](const char* word) { return texts.find(word)->second; };
  if (name == "interpret" || name == "show") return same("report");
  if (name == "plot_training_log") return same("parse_log");
  if (name == "detect" || name == "segment" || name == "yolo") return same("classify");
  if (const auto text = texts.find(name); text != texts.end()) return text->second;
  const auto found = commands.find(name);
  return found == commands.end() ? "" : "here it is '" + found->second + "'";
}

const std::map<std::string, std::string>& options_of_other_programs() {
  static const std::map<std::string, std::string> others{{"--batch-size", "--batch"},
                                                         {"--arch", "--net"},
                                                         {"--model", "--net"},
                                                         {"--bs", "--batch"},
                                                         {"--imgsz", "--image-size"},
                                                         {"--img-size", "--image-size"},
                                                         {"--img", "--image-size"},
                                                         {"--epoch", "--epochs"},
                                                         {"--learning-rate", "--lr"},
                                                         {"--lr0", "--lr"},
                                                         {"--max-steps", "--steps"},
                                                         {"--max-iter", "--steps"},
                                                         {"--iterations", "--steps"},
                                                         {"--output", "--out"},
                                                         {"--workers", "--decode-threads"},
                                                         {"--num-classes", "--classes"}};
  return others;
}

namespace {

// What options of other programs are here, where the command has the option that is named first.
struct OptionHere {
  const char *name, *option, *text;
};
constexpr const char* cosine =
    "the recipes photos and finetune lower the rate by a cosine; else it is '--solver-option "
    "lr_policy=cosine --solver-option max_iter=STEPS'";
constexpr const char* warm_up = "here it is '--solver-option warmup_iter=STEPS', not epochs";
constexpr const char* run =
    "here it is '--run FOLDER', the run folder of the training; 'tandem import' makes one of a "
    "file "
    "of weights";
constexpr const char* channels =
    "the net's input says it: one of one channel sees gray, one of three sees color";
constexpr const char* jitter =
    "here it is '--data-option jitter=BRIGHTNESS,CONTRAST,SATURATION,HUE'";
constexpr const char* size_of_run = "the run has its size of images";
constexpr OptionHere options_here[] = {
    {"--device", "--devices", "here it is '--devices cpu' or '--devices gpu:0'"},
    {"--gpu", "--devices", "here it is '--devices gpu:0', 'gpu:0,1' or 'gpu:all'"},
    {"--gpus", "--devices", "here it is '--devices gpu:0,1'"},
    {"--pretrained", "--weights", "here it is '--weights'"},
    {"--checkpoint", "--weights", "here it is '--weights', or '--resume' to go on with a run"},
    {"--num-classes", "--adapt-classes",
     "there are as many classes as the data have; --adapt-classes fits a net's last layer to them"},
    {"--nc", "--adapt-classes",
     "there are as many classes as the data have; --adapt-classes fits a net's last layer to them"},
    {"--gamma", "--solver-option", "here it is '--solver-option gamma=X'"},
    {"--nesterov", "--solver-type", "here it is '--solver-type Nesterov'"},
    {"--scheduler", "--solver-option", cosine},
    {"--lr-policy", "--solver-option", cosine},
    {"--cos-lr", "--solver-option", cosine},
    {"--lrf", "--solver-option", cosine},
    {"--warmup-epochs", "--solver-option", warm_up},
    {"--warmup", "--solver-option", warm_up},
    {"--clip-grad", "--solver-option", "here it is '--solver-option clip_gradients=X'"},
    {"--accumulate", "--solver-option", "here it is '--solver-option iter_size=N'"},
    {"--iter-size", "--solver-option", "here it is '--solver-option iter_size=N'"},
    {"--val-split", "--data-option", "here it is '--data-option val_fraction=X'"},
    {"--test-size", "--data-option", "here it is '--data-option val_fraction=X'"},
    {"--hflip", "--data-option", "here it is '--data-option mirror=true'"},
    {"--sched", "--solver-option", cosine},
    {"--lr-scheduler", "--solver-option", cosine},
    {"--random-erase", "--data-option", "here it is '--data-option erase=SHARE'"},
    {"--crop-pct", "--data-option", "here it is '--data-option resize=SIDE', of the shorter side"},
    {"--in-chans", "--data-option", channels},
    {"--grayscale", "--data-option", channels},
    {"--validation-split", "--data-option", "here it is '--data-option val_fraction=X'"},
    {"--valid-pct", "--data-option", "here it is '--data-option val_fraction=X'"},
    {"--size", "--image-size", "here it is '--image-size N'"},
    {"--format", "--onnx", "the ending of the file says it: model.onnx"},
    {"--include", "--onnx", "the ending of the file says it: model.onnx"},
    {"--model", "--run", run},
    {"--weights", "--run", run},
    {"--imgsz", "--run", size_of_run},
    {"--image-size", "--run", size_of_run},
    {"--iterations", "--run", "all images of the split are tested"},
    {"--source", "--run", "images are named without an option"},
    {"--amp", "--precision", "here it is '--precision bfloat16' or 'float16'"},
    {"--fp16", "--precision", "here it is '--precision float16'"},
    {"--half", "--precision", "here it is '--precision float16'"},
    {"--half", "--opset", "the file has float32"},
    {"--bf16", "--precision", "here it is '--precision bfloat16'"},
    {"--name", "--out", "here it is '--out FOLDER'"},
    {"--project", "--out", "here it is '--out FOLDER'"},
    {"--logdir", "--out", "here it is '--out FOLDER'"},
    {"--save-period", "--snapshot", "here it is '--snapshot STEPS', not epochs"},
    {"--mean", "--data-option", "here it is '--data-option mean=B,G,R'"},
    {"--early-stopping", "--patience", "here it is '--patience N', of evaluations"},
    {"--dropout", "--solver-option", "it is dropout_ratio of the net's Dropout layers"},
    {"--val", "--data-option",
     "give a folder with train/ and val/ or with lists train.txt and val.txt, or '--data-option "
     "val_fraction=X'"},
    {"--fliplr", "--data-option", "here it is '--data-option mirror=true'"},
    {"--degrees", "--data-option", "here it is '--data-option rotation=DEGREES'"},
    {"--hsv-h", "--data-option", jitter},
    {"--hsv-s", "--data-option", jitter},
    {"--hsv-v", "--data-option", jitter},
    {"--color-jitter", "--data-option", jitter},
    {"--scale", "--data-option",
     "of pixels it is '--data-option scale=X', of pictures 'crop_area=LEAST,MOST'"},
    {"--erasing", "--data-option", "here it is '--data-option erase=SHARE'"},
    {"--reprob", "--data-option", "here it is '--data-option erase=SHARE'"},
    {"--auto-augment", "--augment", "here it is '--augment strong'"},
    {"--aa", "--augment", "here it is '--augment strong'"},
    {"--cache", "--data-option", "here it is '--data-option cache=MIB', of memory"},
    {"--nbs", "--solver-option", "here it is '--solver-option iter_size=N'"},
    {"--plots", "--out", "report.html in the run folder has them"},
    {"--exist-ok", "--out", "a run folder is never written over: name another with --out"},
    {"--log-dir", "--out", "here it is '--out FOLDER', which has log.txt"},
    {"--sigint-effect", "--resume", "Ctrl-C ends a run with a checkpoint, and --resume goes on"},
    {"--sighup-effect", "--resume", "a hangup ends a run with a checkpoint, and --resume goes on"},
    {"--std", "--data-option", "here it is '--data-option scale=1/X', one for all channels"},
};

}  // namespace

std::string option_of_other_program(const std::string& name,
                                    const std::function<bool(const char* option)>& has_option) {
  std::string dashed = name;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const OptionHere& one : options_here) {
    if (dashed == one.name && has_option(one.option)) return one.text;
  }
  return "";
}

}  // namespace tandem::cli
