#include "runtime/fork.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "autograd/mode.h"
#include "core/fork.h"
#include "runtime/future.h"
#include "runtime/interpreter.h"

namespace weft {
namespace {

struct Task {
  Ref<const Program> program;  // keeps the function alive
  const Function* function = nullptr;
  std::vector<Value> args;
  Value future;
  bool grad = true, inference = false;

  void run() noexcept {
    autograd::GradGuard guard(grad);
    const bool outer = autograd::set_inference_enabled(inference);
    auto* result = future.object<FutureObject>();
    try {
      result->set_value(run_function(*function, args.data(), args.size()));
    } catch (...) {
      result->set_error(std::current_exception());
    }
    autograd::set_inference_enabled(outer);
  }
};

// Threads that wait for a task. A task is only ever handed to a thread that has nothing else to do.
class Workers {
 public:
  bool start(Task& task) {
    std::unique_lock lock(mutex_);
    if (idle_ > handed_.size()) {
      handed_.push_back(std::move(task));
      lock.unlock();
      ready_.notify_one();
      return true;
    }
    if (threads_ >= limit_) return false;
    ++threads_;
    handed_.push_back(std::move(task));
    lock.unlock();
    std::thread([this] { work(); }).detach();
    return true;
  }

  static Workers& instance() {
    // Not std::call_once: it would tie us to static thread-local memory of the C++ library, and
    // weft could not be loaded where that library is in use already.
    [[maybe_unused]] static const bool made = [] {
      current_ = new Workers();
      return true;
    }();
    return *current_;
  }
  // A child process has none of the threads; calls that waited for one are lost, and their futures
  // say so.
  static void forget() {
    if (current_ != nullptr) current_ = new Workers();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      ready_.wait(lock, [&] { return !handed_.empty(); });
      --idle_;
      Task task = std::move(handed_.back());
      handed_.pop_back();
      lock.unlock();
      task.run();
      task = Task();
      lock.lock();
    }
  }

  static Workers* current_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Task> handed_;
  size_t idle_ = 0;
  size_t threads_ = 0;
  const size_t limit_ = std::max<size_t>(4 * std::thread::hardware_concurrency(), 16);
};
Workers* Workers::current_ = nullptr;

[[maybe_unused]] const bool workers_knows_forks =
    at_fork(ForkRank::Threads, {[] { Workers::instance(); }, nullptr, [] { Workers::forget(); }});

}  // namespace

Value fork_function(const Function& function, std::vector<Value> args) {
  Task task;
  task.program = Ref<const Program>(function.program);
  task.function = &function;
  task.args = std::move(args);
  task.future = make_future();
  task.grad = autograd::grad_enabled();
  task.inference = autograd::inference_enabled();
  Value future = task.future;
  if (!Workers::instance().start(task)) task.run();
  return future;
}

}  // namespace weft
