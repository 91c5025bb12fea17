#include "core/parent_watch.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

using namespace weft;

namespace {

// A child that never ends by itself, and watches.
pid_t watching_child(pid_t parent, bool direct, const int (&ends)[2], double patience) {
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(30);
  close(ends[0]);
  watch_parent(parent, direct, ends[1], patience);
  char byte = 0;
  if (write(ends[1], &byte, 1) != 1) _exit(3);
  for (;;) pause();
}

int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST(watch_ends_a_process_whose_socket_hangs_up) {
  int ends[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const pid_t child = watching_child(getpid(), true, ends, 0.1);
  char byte = 0;
  close(ends[1]);
  CHECK_EQ(read(ends[0], &byte, 1), 1);
  CHECK_EQ(waitpid(child, nullptr, WNOHANG), 0);
  close(ends[0]);
  CHECK_EQ(WEXITSTATUS(status_of(child)), 1);
}

TEST(watch_ends_a_process_without_parent) {
  int ends[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  status_of(gone);
  for (bool direct : {true, false}) {  // it is not our child's parent, and it does not live
    const pid_t child = watching_child(gone, direct, ends, 0);
    CHECK_EQ(WEXITSTATUS(status_of(child)), 1);
  }
  close(ends[0]);
  close(ends[1]);
}
