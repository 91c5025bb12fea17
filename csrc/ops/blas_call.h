// A call of OpenBLAS, as long as the object lives.
//
// OpenBLAS takes its work space from a list behind a lock of its own, which nobody can free in a
// child that was forked while another thread held it. So a fork waits until all threads have left
// OpenBLAS, and keeps them from entering it meanwhile. It waits 5 s at most: whoever is inside for
// longer has had its work space for long, but LAPACK's routines ask for more now and then.
#pragma once

namespace weft {

class BlasCall {
 public:
  BlasCall() noexcept;
  ~BlasCall();
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;
};

}  // namespace weft
