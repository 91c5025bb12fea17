! Runs a compiled model in Fortran:
!
!     gfortran inference.f90 $(python -m weft --flags) -o inference && ./inference model.weft
module weft
  use iso_c_binding
  implicit none
  integer(c_int), parameter :: weft_float32 = 11
  interface
    function weft_module_load(path, out) bind(c) result(status)
      import :: c_char, c_ptr, c_int
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), intent(out) :: out
      integer(c_int) :: status
    end function
    function weft_tensor_wrap(data, dtype, ndim, sizes, strides, release, context, out) &
        bind(c) result(status)
      import :: c_ptr, c_funptr, c_int, c_int64_t
      type(c_ptr), value :: data, strides, context
      integer(c_int), value :: dtype, ndim
      integer(c_int64_t), intent(in) :: sizes(*)
      type(c_funptr), value :: release
      type(c_ptr), intent(out) :: out
      integer(c_int) :: status
    end function
    function weft_module_forward(module, inputs, count, out) bind(c) result(status)
      import :: c_ptr, c_size_t, c_int
      type(c_ptr), value :: module
      type(c_ptr), intent(in) :: inputs(*)
      integer(c_size_t), value :: count
      type(c_ptr), intent(out) :: out
      integer(c_int) :: status
    end function
    function weft_tensor_contiguous(tensor, out) bind(c) result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: tensor
      type(c_ptr), intent(out) :: out
      integer(c_int) :: status
    end function
    function weft_tensor_data(tensor) bind(c) result(data)
      import :: c_ptr
      type(c_ptr), value :: tensor
      type(c_ptr) :: data
    end function
    function weft_tensor_numel(tensor) bind(c) result(count)
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: tensor
      integer(c_int64_t) :: count
    end function
    subroutine weft_tensor_release(tensor) bind(c)
      import :: c_ptr
      type(c_ptr), value :: tensor
    end subroutine
    subroutine weft_module_release(module) bind(c)
      import :: c_ptr
      type(c_ptr), value :: module
    end subroutine
  end interface
end module

program inference
  use weft
  implicit none
  character(len=1024) :: path
  real(c_float), target :: row(4) = [0.5, -1.0, 2.0, 0.25]
  real(c_float), pointer :: values(:)
  type(c_ptr) :: model, x, y, whole
  integer :: i

  call get_command_argument(1, path)
  if (weft_module_load(trim(path) // c_null_char, model) /= 0) stop 1
  ! Sizes are in row-major order: a Fortran array has them the other way round.
  if (weft_tensor_wrap(c_loc(row), weft_float32, 2, [1_c_int64_t, 4_c_int64_t], c_null_ptr, &
      c_null_funptr, c_null_ptr, x) /= 0) stop 1
  if (weft_module_forward(model, [x], 1_c_size_t, y) /= 0) stop 1
  if (weft_tensor_contiguous(y, whole) /= 0) stop 1
  call c_f_pointer(weft_tensor_data(whole), values, [weft_tensor_numel(whole)])
  do i = 1, size(values)
    print '(es16.9)', values(i)
  end do
  call weft_tensor_release(whole)
  call weft_tensor_release(y)
  call weft_tensor_release(x)
  call weft_module_release(model)
end program
