#include "core/parent_watch.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "core/error.h"

namespace weft {
namespace {

struct Watch {
  pid_t parent;
  bool direct;
  int socket;
};

std::atomic<double> patience{0};

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool lives(const Watch& watch) {
  if (watch.direct) return getppid() == watch.parent;
  return kill(watch.parent, 0) == 0 || errno != ESRCH;
}

void* run(void* context) {
  const std::unique_ptr<Watch> watch(static_cast<Watch*>(context));
  pollfd socket{watch->socket, 0, 0};  // no events: only that the other side hung up
  while (poll(&socket, 1, 1000) <= 0 && lives(*watch)) {
  }
  const double start = now();
  while (now() < start + patience.load()) usleep(20'000);
  _exit(1);
}

}  // namespace

void watch_parent(pid_t parent, bool direct, int socket, double seconds) {
  patience.store(seconds);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 20);  // with the thread-local memory of all libraries
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;  // signals are for the other threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto watch = std::make_unique<Watch>(Watch{parent, direct, socket});
  pthread_t thread{};
  const int error = pthread_create(&thread, &attributes, run, watch.get());
  if (error == 0) watch.release();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  WEFT_CHECK(error == 0, "DataLoader: expected a thread that watches over its worker, got: ",
             std::strerror(error));
}

void set_watch_patience(double seconds) noexcept { patience.store(seconds); }

}  // namespace weft
