#include "config/hyper_parameters.h"

namespace optim_offload {
namespace {

// Far above any use, and far enough below the largest float that what optimizers make of two of
// them is one.
constexpr double kLargest = 1e6;
constexpr int64_t kMostIterations = 1'000'000'000;

TomlCheck<double> not_negative() { return between(0.0, kLargest); }
TomlCheck<double> decay_rate() { return from_below(0.0, 1.0); }

std::tuple<double, double> read_betas(TomlTable& optim, const char* key,
                                      const std::tuple<double, double>& fallback) {
  const auto [first, second] = fallback;
  const auto betas = optim.get_floats(key, {first, second}, decay_rate());
  return {betas[0], betas[1]};
}

// Each begins with LibTorch's own defaults, so that they are written down in one place only.

torch::optim::SGDOptions read_sgd(TomlTable& optim) {
  // LibTorch has no default here; this is Python's.
  torch::optim::SGDOptions o(optim.get_float("lr", 1e-3, not_negative()));
  o.momentum(optim.get_float("momentum", o.momentum(), not_negative()));
  o.dampening(optim.get_float("dampening", o.dampening(), between(-kLargest, kLargest)));
  o.weight_decay(optim.get_float("weight_decay", o.weight_decay(), not_negative()));
  o.nesterov(optim.get_bool("nesterov", o.nesterov()));
  if (o.nesterov() && (o.momentum() <= 0 || o.dampening() != 0)) {
    optim.fail("nesterov", "needs momentum above 0 and dampening = 0; set them, or this to false");
  }
  return o;
}

template <typename Options>
Options read_adam(TomlTable& optim) {
  Options o;
  o.lr(optim.get_float("lr", o.lr(), not_negative()));
  o.betas(read_betas(optim, "betas", o.betas()));
  o.eps(optim.get_float("eps", o.eps(), not_negative()));
  o.weight_decay(optim.get_float("weight_decay", o.weight_decay(), not_negative()));
  o.amsgrad(optim.get_bool("amsgrad", o.amsgrad()));
  return o;
}

torch::optim::RMSpropOptions read_rmsprop(TomlTable& optim) {
  torch::optim::RMSpropOptions o;
  o.lr(optim.get_float("lr", o.lr(), not_negative()));
  o.alpha(optim.get_float("alpha", o.alpha(), between(0.0, 1.0)));
  o.eps(optim.get_float("eps", o.eps(), not_negative()));
  o.weight_decay(optim.get_float("weight_decay", o.weight_decay(), not_negative()));
  o.momentum(optim.get_float("momentum", o.momentum(), not_negative()));
  o.centered(optim.get_bool("centered", o.centered()));
  return o;
}

torch::optim::AdagradOptions read_adagrad(TomlTable& optim) {
  torch::optim::AdagradOptions o;
  o.lr(optim.get_float("lr", o.lr(), not_negative()));
  o.lr_decay(optim.get_float("lr_decay", o.lr_decay(), not_negative()));
  o.weight_decay(optim.get_float("weight_decay", o.weight_decay(), not_negative()));
  o.initial_accumulator_value(
      optim.get_float("initial_accumulator_value", o.initial_accumulator_value(), not_negative()));
  o.eps(optim.get_float("eps", o.eps(), not_negative()));
  return o;
}

torch::optim::LBFGSOptions read_lbfgs(TomlTable& optim) {
  torch::optim::LBFGSOptions o;
  const auto positive = between<int64_t>(1, kMostIterations);
  o.lr(optim.get_float("lr", o.lr(), not_negative()));
  o.max_iter(optim.get_int("max_iter", o.max_iter(), positive));
  const int64_t max_eval = optim.get_int("max_eval", o.max_iter() * 5 / 4, positive);
  if (optim.has("max_eval")) o.max_eval(max_eval);
  o.tolerance_grad(optim.get_float("tolerance_grad", o.tolerance_grad(), not_negative()));
  o.tolerance_change(optim.get_float("tolerance_change", o.tolerance_change(), not_negative()));
  o.history_size(optim.get_int("history_size", o.history_size(), positive));
  const std::string search = optim.get_string("line_search_fn", "none", {"none", "strong_wolfe"});
  if (search != "none") o.line_search_fn(search);
  return o;
}

MuonOptions read_muon(TomlTable& optim, MuonOptions& adamw) {
  MuonOptions o;
  o.lr(optim.get_float("lr", o.lr(), not_negative()));
  o.weight_decay(optim.get_float("weight_decay", o.weight_decay(), not_negative()));
  o.momentum(optim.get_float("momentum", o.momentum(), not_negative()));
  o.nesterov(optim.get_bool("nesterov", o.nesterov()));
  const auto [a, b, c] = o.ns_coefficients();
  const auto coefficients =
      optim.get_floats("ns_coefficients", {a, b, c}, between(-kLargest, kLargest));
  o.ns_coefficients({coefficients[0], coefficients[1], coefficients[2]});
  o.eps(optim.get_float("eps", o.eps(), not_negative()));
  o.ns_steps(optim.get_int("ns_steps", o.ns_steps(), between<int64_t>(0, 99)));
  o.adjust_lr_fn(
      optim.get_string("adjust_lr_fn", o.adjust_lr_fn(), {"original", "match_rms_adamw"}));
  adamw.adamw(true);
  adamw.lr(optim.get_float("adamw_lr", o.lr(), not_negative()));
  adamw.weight_decay(optim.get_float("adamw_weight_decay", o.weight_decay(), not_negative()));
  adamw.adamw_betas(read_betas(optim, "adamw_betas", adamw.adamw_betas()));
  adamw.adamw_eps(optim.get_float("adamw_eps", adamw.adamw_eps(), not_negative()));
  return o;
}

}  // namespace

const std::vector<std::string>& optimizer_types() {
  static const std::vector<std::string> types = {"sgd",     "adam",    "adamw", "fused_adamw",
                                                 "rmsprop", "adagrad", "muon",  "lbfgs"};
  return types;
}

void read_hyper_parameters(TomlTable optim, OptimizerConfig& config) {
  config.type = optim.get_string("type", config.type, optimizer_types());
  if (config.type == "sgd") {
    config.hyper_parameters = read_sgd(optim);
  } else if (config.type == "adam") {
    config.hyper_parameters = read_adam<torch::optim::AdamOptions>(optim);
  } else if (config.type == "adamw" || config.type == "fused_adamw") {
    config.hyper_parameters = read_adam<torch::optim::AdamWOptions>(optim);
  } else if (config.type == "rmsprop") {
    config.hyper_parameters = read_rmsprop(optim);
  } else if (config.type == "adagrad") {
    config.hyper_parameters = read_adagrad(optim);
  } else if (config.type == "lbfgs") {
    config.hyper_parameters = read_lbfgs(optim);
  } else {
    config.hyper_parameters = read_muon(optim, config.muon_adamw);
  }
  optim.reject_unknown_keys("", "for type = \"" + config.type + "\"");
}

}  // namespace optim_offload
