//! Runs a compiled model in Rust, without a crate:
//!
//!     library=$(python -m weft --library)
//!     rustc -O inference.rs -L $library -l weft -C link-arg=-Wl,-rpath,$library && ./inference model.weft
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr::{null, null_mut};

#[repr(C)]
pub struct Module {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct Handle {
    _opaque: [u8; 0],
}
const FLOAT32: c_int = 11;

extern "C" {
    fn weft_last_error() -> *const c_char;
    fn weft_module_load(path: *const c_char, out: *mut *mut Module) -> c_int;
    fn weft_module_forward(
        module: *const Module, inputs: *const *const Handle, count: usize, out: *mut *mut Handle,
    ) -> c_int;
    fn weft_module_release(module: *mut Module);
    fn weft_tensor_wrap(
        data: *mut c_void, dtype: c_int, ndim: c_int, sizes: *const i64, strides: *const i64,
        release: Option<extern "C" fn(*mut c_void)>, context: *mut c_void, out: *mut *mut Handle,
    ) -> c_int;
    fn weft_tensor_contiguous(tensor: *const Handle, out: *mut *mut Handle) -> c_int;
    fn weft_tensor_data(tensor: *const Handle) -> *const c_void;
    fn weft_tensor_numel(tensor: *const Handle) -> i64;
    fn weft_tensor_release(tensor: *mut Handle);
}

/// What a call puts out, or why it failed.
fn made<T>(call: impl FnOnce(*mut *mut T) -> c_int) -> Result<*mut T, String> {
    let mut out = null_mut();
    match call(&mut out) {
        0 => Ok(out),
        _ => Err(unsafe { CStr::from_ptr(weft_last_error()) }.to_string_lossy().into_owned()),
    }
}

/// Owns a tensor.
struct Tensor(*mut Handle);
impl Drop for Tensor {
    fn drop(&mut self) {
        unsafe { weft_tensor_release(self.0) }
    }
}

struct Model(*mut Module);
impl Model {
    fn load(path: &str) -> Result<Model, String> {
        let path = CString::new(path).map_err(|error| error.to_string())?;
        Ok(Model(made(|out| unsafe { weft_module_load(path.as_ptr(), out) })?))
    }

    /// One row through the model.
    fn forward(&self, row: &mut [f32]) -> Result<Vec<f32>, String> {
        let sizes = [1, row.len() as i64];
        let data = row.as_mut_ptr().cast();
        let x = Tensor(made(|out| unsafe {
            weft_tensor_wrap(data, FLOAT32, 2, sizes.as_ptr(), null(), None, null_mut(), out)
        })?);
        let inputs = [x.0.cast_const()];
        let y = Tensor(made(|out| unsafe {
            weft_module_forward(self.0, inputs.as_ptr(), 1, out)
        })?);
        let whole = Tensor(made(|out| unsafe { weft_tensor_contiguous(y.0, out) })?);
        let values = unsafe { weft_tensor_data(whole.0) }.cast::<f32>();
        let count = unsafe { weft_tensor_numel(whole.0) } as usize;
        Ok(unsafe { std::slice::from_raw_parts(values, count) }.to_vec())
    }
}
impl Drop for Model {
    fn drop(&mut self) {
        unsafe { weft_module_release(self.0) }
    }
}

fn main() -> Result<(), String> {
    let path = std::env::args().nth(1).ok_or("usage: inference model.weft")?;
    for value in Model::load(&path)?.forward(&mut [0.5, -1.0, 2.0, 0.25])? {
        println!("{value}");
    }
    Ok(())
}
