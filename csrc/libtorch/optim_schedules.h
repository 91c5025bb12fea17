// Schedules of learning rates.
#pragma once

#include "optim.h"

namespace torch::optim {
inline namespace over_weft {

class LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  virtual ~LRScheduler() = default;
  void step() {
    const std::vector<double> rates = get_lrs();
    for (size_t i = 0; i < rates.size(); ++i) {
      optimizer_.param_groups()[i].options().set_lr(rates[i]);
    }
    ++step_count_;
  }

 protected:
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const {
    std::vector<double> rates;
    for (const auto& group : optimizer_.param_groups()) rates.push_back(group.options().get_lr());
    return rates;
  }
  unsigned step_count_ = 0;

 private:
  Optimizer& optimizer_;
};
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1)
      : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {}

 private:
  std::vector<double> get_lrs() override {
    std::vector<double> rates = get_current_lrs();
    if (step_count_ == 0 || step_count_ % step_size_ != 0) return rates;
    for (double& rate : rates) rate *= gamma_;
    return rates;
  }
  unsigned step_size_;
  double gamma_;
};
class ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };
  explicit ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min,
                                      float factor = 0.1f, int patience = 10,
                                      double threshold = 1e-4, ThresholdMode threshold_mode = rel,
                                      int cooldown = 0, std::vector<float> min_lr = {},
                                      double eps = 1e-8, bool verbose = false)
      : optimizer_(optimizer),
        mode_(mode),
        factor_(factor),
        patience_(patience),
        threshold_(threshold),
        threshold_mode_(threshold_mode),
        cooldown_(cooldown),
        min_lrs_(std::move(min_lr)),
        eps_(eps),
        verbose_(verbose) {
    TORCH_CHECK(factor < 1, "ReduceLROnPlateauScheduler: expected a factor below 1, got ", factor);
    min_lrs_.resize(optimizer.param_groups().size(), min_lrs_.empty() ? 0.0f : min_lrs_[0]);
    reset();
  }
  void reset() {
    best_ = mode_ == min ? std::numeric_limits<float>::max() : std::numeric_limits<float>::lowest();
    bad_epochs_ = left_ = 0;
  }
  void step(float metric) {
    ++epoch_;
    if (is_better(metric)) {
      best_ = metric;
      bad_epochs_ = 0;
    } else {
      ++bad_epochs_;
    }
    if (left_ > 0) {
      --left_;
      bad_epochs_ = 0;
    }
    if (bad_epochs_ <= patience_) return;
    reduce();
    left_ = cooldown_;
    bad_epochs_ = 0;
  }

 private:
  bool is_better(double metric) const {
    const double sign = mode_ == min ? -1 : 1;
    const double bound =
        threshold_mode_ == rel ? best_ * (1 + sign * threshold_) : best_ + sign * threshold_;
    return mode_ == min ? metric < bound : metric > bound;
  }
  void reduce() {
    for (size_t i = 0; i < optimizer_.param_groups().size(); ++i) {
      OptimizerOptions& options = optimizer_.param_groups()[i].options();
      const double before = options.get_lr();
      const double rate = std::max(before * factor_, static_cast<double>(min_lrs_[i]));
      if (before - rate <= eps_) continue;
      options.set_lr(rate);
      if (verbose_) {
        std::cout << "Epoch " << epoch_ << ": reducing learning rate of group " << i << " to "
                  << rate << std::endl;
      }
    }
  }

  Optimizer& optimizer_;
  SchedulerMode mode_;
  double factor_;
  int patience_;
  double threshold_;
  ThresholdMode threshold_mode_;
  int cooldown_, bad_epochs_ = 0, left_ = 0, epoch_ = 0;
  std::vector<float> min_lrs_;
  double eps_, best_ = 0;
  bool verbose_;
};

}  // namespace over_weft
}  // namespace torch::optim
